// What a session here needs to end the session at the provider that it came from. It goes with the login through every
// record that holds a login on its way, so it is sealed before it is given to one: it names the user elsewhere, and an ID
// token holds what the provider says of them.
import type { KeyObject } from 'node:crypto';
import type { UpstreamGrant } from '../records/identities.ts';
import { isSealed, openValue, SealFault, sealValue } from '../store/sealing/members.ts';
import { sharedKey } from '../store/shared-secret.ts';
import type { Login } from '../users/login.ts';
import type { UpstreamDependencies } from './redirect.ts';

type ProviderSession = Login['providerSession'];
/** What is needed to seal and open. */
export type SealingDependencies = Pick<UpstreamDependencies, 'store' | 'random'>;

/** A longer ID token is not kept: as `id_token_hint` it would make the logout address too long for servers. */
const LONGEST_TOKEN = 6144;

/**
 * What is kept of a login's grant in its session.
 * @param connection the name of the one that it came by; it opens with this alone.
 * @returns sealed; undefined where the strategy needs nothing.
 */
export async function sealedSession(
  deps: SealingDependencies,
  connection: string,
  grant: UpstreamGrant | undefined,
): Promise<ProviderSession> {
  const { logout, id_token: idToken } = grant ?? {};
  const isShort = idToken !== undefined && idToken.length <= LONGEST_TOKEN;
  const kept = logout ?? (isShort ? { id_token: idToken } : undefined);
  if (kept === undefined) return undefined;
  return { ...sealValue(await providerKey(deps), placeOf(connection), kept) };
}

/**
 * What a session was given by {@link sealedSession}. Sessions of earlier releases have it open.
 * @returns undefined where it has none, or nobody can open it any more.
 */
export async function openedSession(
  deps: SealingDependencies,
  connection: string,
  session: ProviderSession,
): Promise<ProviderSession> {
  if (session === undefined || !isSealed(session)) return session;
  try {
    return openValue(await providerKey(deps), placeOf(connection), session) as Record<string, string>;
  } catch (thrown) {
    // The key was lost and replaced by a new one. The logout then uses what is known of the user's last login.
    if (thrown instanceof SealFault) return undefined;
    throw thrown;
  }
}

/** The key by which what a provider gave is sealed, on its way through records that are not. */
export const providerKey = (deps: SealingDependencies): Promise<KeyObject> =>
  sharedKey(deps, 'provider-sessions');

const placeOf = (id: string) => ({ collection: 'connections', id, member: ['providerSession'] });
