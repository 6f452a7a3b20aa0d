// Renews expired access tokens of upstream providers at the time that an API call asks for them (RFC 6749 §6).
import type { Logger } from 'pino';
import type { UpstreamGrant } from '../../records/connections/identities.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import type { Leases } from '../../store/leases.ts';
import type { Config } from '../../tenant/config.ts';
import type { Identity } from '../../users/changes.ts';
import type { Users } from '../../users/users.ts';
import type { UpstreamDependencies } from './redirect.ts';
import { strategyOf } from './strategies.ts';

interface RefreshDependencies extends UpstreamDependencies {
  config: Config;
  users: Pick<Users, 'identitiesOf' | 'renewGrant'>;
  leases: Pick<Leases, 'afterOthers'>;
  log: Logger;
}

// docs/understand/decisions/connections.md#access-tokens-of-providers-are-renewed-when-they-are-returned
/** Renews the expired access tokens of a user's identities; one that cannot be renewed is left unchanged. */
type RenewProviderTokens = (userId: string) => Promise<void>;

export function renewProviderTokens(deps: RefreshDependencies): RenewProviderTokens {
  // A provider that rotates refresh tokens treats a second use of one as theft, so each is used once: in this process by
  // this map, across processes by a lease.
  const running = new Map<string, Promise<void>>();
  const renewOnce = (identity: Identity): Promise<void> => {
    const inProgress = running.get(identity.id);
    if (inProgress !== undefined) return inProgress;
    const renewal = deps.leases
      .afterOthers(`upstream ${identity.id}`, () => renew(deps, identity))
      .finally(() => running.delete(identity.id));
    running.set(identity.id, renewal);
    return renewal;
  };
  return async (userId) => {
    await Promise.all((await deps.users.identitiesOf(userId)).map(renewOnce));
  };
}

async function renew(deps: RefreshDependencies, identity: Identity): Promise<void> {
  // Read again: another call may have renewed the token while this one waited for the lease.
  const current = (await deps.users.identitiesOf(identity.user_id)).find(({ id }) => id === identity.id);
  const grant = current?.upstream;
  if (grant?.refresh_token === undefined || !hasExpired(grant, deps)) return;
  const connection = await deps.config.connection(identity.connection);
  const strategy = connection && strategyOf(connection);
  if (connection === undefined || strategy?.page !== 'redirect' || strategy.name !== identity.provider)
    return;
  try {
    const { refresh_token: refreshToken, id_token: idToken } = grant;
    const renewed = await strategy.refresh?.(deps, { connection, refreshToken, idToken });
    if (renewed !== undefined) await deps.users.renewGrant(identity.id, refreshToken, renewed);
  } catch (err) {
    deps.log.warn({ err, connection: connection.name }, "a provider's access token was not renewed");
  }
}

function hasExpired({ expires_at }: UpstreamGrant, { wallClock }: RefreshDependencies): boolean {
  return expires_at !== undefined && expires_at <= epochSeconds(wallClock);
}
