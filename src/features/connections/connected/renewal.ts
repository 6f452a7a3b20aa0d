// Renews the access token of a connected account before it is given out, if it has expired or is about to (RFC 6749 §6).
import type { Logger } from 'pino';
import type { UpstreamGrant } from '../../../records/identities.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import type { Leases } from '../../../store/leases.ts';
import type { ConnectedAccount } from '../../../users/connected-accounts.ts';
import type { UpstreamDependencies } from '../redirect.ts';
import type { Upstream } from '../upstream/begin.ts';

export interface RenewalDependencies extends UpstreamDependencies {
  leases: Pick<Leases, 'afterOthers'>;
  log: Logger;
}

/** Seconds. A token with a shorter remaining lifetime could expire before the application uses it. */
const MARGIN = 30;

/**
 * Returns the tokens of a connected account, with an access token that has not expired.
 * @returns `none` when it has expired and cannot be renewed, or the account is deleted; `failed` when the provider did not
 *   renew it.
 */
export async function currentGrant(
  deps: RenewalDependencies,
  { id }: Pick<ConnectedAccount, 'id'>,
  upstream: Upstream,
): Promise<UpstreamGrant | 'none' | 'failed'> {
  const accounts = deps.store.collection('connectedAccounts');
  const grantOf = async () => (await accounts.get(id))?.grant;
  const stored = await grantOf();
  if (stored !== undefined && isUnexpired(deps, stored)) return stored;
  // A provider that rotates refresh tokens treats a second use of one as theft. A lease keeps other processes from it, too.
  let outcome: UpstreamGrant | 'none' | 'failed' = 'none';
  await deps.leases.afterOthers(`connected ${id}`, async () => {
    const latest = await grantOf();
    if (latest !== undefined)
      outcome = isUnexpired(deps, latest) ? latest : await renew(deps, id, latest, upstream);
  });
  return outcome;
}

async function renew(
  deps: RenewalDependencies,
  id: string,
  { refresh_token: refreshToken, id_token: idToken }: UpstreamGrant,
  { connection, strategy }: Upstream,
): Promise<UpstreamGrant | 'none' | 'failed'> {
  if (refreshToken === undefined || strategy.refresh === undefined) return 'none';
  try {
    const tokens = await strategy.refresh(deps, { connection, refreshToken, idToken });
    const updated = await deps.store.collection('connectedAccounts').update(id, (current) => {
      // The account was connected again meanwhile, so its tokens are newer.
      if (current.grant.refresh_token !== refreshToken) return current;
      // The expired token goes even if there is no new one: DPoP-bound tokens are not stored.
      const { access_token: _expired, expires_at: _at, ...before } = current.grant;
      return { ...current, grant: { ...before, ...tokens } };
    });
    return updated?.grant.access_token === undefined ? 'none' : updated.grant;
  } catch (err) {
    deps.log.warn({ err, connection: connection.name }, "a connected account's token was not renewed");
    return 'failed';
  }
}

function isUnexpired(
  { wallClock }: RenewalDependencies,
  { access_token, expires_at }: UpstreamGrant,
): boolean {
  if (access_token === undefined) return false;
  return expires_at === undefined || expires_at > epochSeconds(wallClock) + MARGIN;
}
