// The data that a session needs to be ended at its identity provider, too. It is stored in every record that carries the
// login, and is personal: it has the user's identifier at the provider, or an ID token. So it is sealed (encrypted) before it
// is stored.
import type { KeyObject } from 'node:crypto';
import type { UpstreamGrant } from '../../records/identities.ts';
import { isSealed, openValue, SealFault, sealValue } from '../../store/sealing/members.ts';
import { sharedKey } from '../../store/shared-secret.ts';
import type { Login } from '../../users/login.ts';
import type { UpstreamDependencies } from './redirect.ts';

type ProviderSession = Login['providerSession'];

export type SealingDependencies = Pick<UpstreamDependencies, 'store' | 'random'>;

/** Characters. A longer ID token is not kept: as `id_token_hint` it would make the logout URL too long for servers. */
const MAX_TOKEN_LENGTH = 6144;

/**
 * Seals what a session keeps of the provider's answer to its login.
 * @param connection the name of the connection; the value can be opened for this connection only.
 * @returns undefined when the provider gave nothing that a logout needs.
 */
export async function sealSession(
  deps: SealingDependencies,
  connection: string,
  grant: UpstreamGrant | undefined,
): Promise<ProviderSession> {
  const { logout, id_token: idToken } = grant ?? {};
  const isShort = idToken !== undefined && idToken.length <= MAX_TOKEN_LENGTH;
  const content = logout ?? (isShort ? { id_token: idToken } : undefined);
  if (content === undefined) return undefined;
  return { ...sealValue(await providerKey(deps), placeOf(connection), content) };
}

/**
 * Opens what {@link sealSession} returned. Sessions of earlier releases have the value unsealed, which is returned as it is.
 * @returns undefined when the session has none, or the key that it was sealed with is lost.
 */
export async function openSession(
  deps: SealingDependencies,
  connection: string,
  session: ProviderSession,
): Promise<ProviderSession> {
  if (session === undefined || !isSealed(session)) return session;
  try {
    return openValue(await providerKey(deps), placeOf(connection), session) as Record<string, string>;
  } catch (thrown) {
    // The key was lost and replaced. The logout then uses what is known of the user's last login.
    if (thrown instanceof SealFault) return undefined;
    throw thrown;
  }
}

/** Returns the key that seals what a provider gave, for storage in records that are not sealed as a whole. */
export const providerKey = (deps: SealingDependencies): Promise<KeyObject> =>
  sharedKey(deps, 'provider-sessions');

const placeOf = (id: string) => ({ collection: 'connections', id, member: ['providerSession'] });
