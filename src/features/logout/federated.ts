// Logout at the upstream identity provider of a session (`federated`), and the return from there.

import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { UserSession } from '../../engine/session/sessions.ts';
import { newBrowserSecret } from '../../http/server/browser-cookie.ts';
import { isHttpsOrLoopback } from '../../records/connections/upstream.ts';
import type { Random } from '../../runtime/secrets.ts';

export interface FederatedDependencies {
  baseUrl: string;
  /** Whether providers may be on this machine, without TLS. */
  allowLoopback: boolean;
  challenges: Challenges;
  random: Random;
  logoutAtProvider: LogoutAtProvider;
}

/** Where a provider sends the browser after its logout. */
interface ProviderReturn {
  /** The URL, with `state` in its query. */
  returnTo: string;
  /** The URL without it, for protocols that have a parameter for a state. */
  callback: string;
  state: string;
}

/**
 * Returns the URL that ends a session at its provider, as the strategy of its connection defines it.
 * @returns undefined when there is none.
 */
type LogoutAtProvider = (
  session: UserSession | undefined,
  providerReturn: ProviderReturn,
) => Promise<string | undefined>;

/** The path where identity providers send the browser back to; it must be allowed there. */
export const CALLBACK_PATH = '/logout/callback';

const PURPOSE = 'federated_logout';
/** How long the provider's own pages may take, seconds; without a session here, of whoever asks, less. */
const TTL = { session: 3600, none: 300 };

// docs/understand/decisions/sessions-logout.md#federated-logout-goes-to-the-url-that-the-connections-strategy-defines
/**
 * Returns the URL at which the user logs out of the session's identity provider.
 * @param session undefined where there is none here, but perhaps at the tenant that this one takes the place of.
 * @param returnTo where the browser goes afterwards. Stored under a one-time `state` and never sent along, so that
 *   nobody can replace it.
 * @returns undefined when there is no such URL.
 */
export async function federatedLogout(
  deps: FederatedDependencies,
  session: UserSession | undefined,
  returnTo: string,
): Promise<string | undefined> {
  const subject = session?.sid ?? newBrowserSecret(deps.random);
  const { secret: state } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject,
    ttlSeconds: session === undefined ? TTL.none : TTL.session,
    ...(session === undefined && { isWaiting: true }),
    data: { returnTo },
  });
  const callback = `${deps.baseUrl}${CALLBACK_PATH}`;
  const providerReturn = { callback, state, returnTo: `${callback}?state=${state}` };
  const address = await deps.logoutAtProvider(session, providerReturn);
  if (address !== undefined && isUsable(address, deps.allowLoopback)) return address;
  await deps.challenges.discard(PURPOSE, subject);
  return undefined;
}

/** @returns where the browser goes; undefined when `state` is unknown or was used. */
export async function returnFromProvider(
  { challenges }: FederatedDependencies,
  state: string | undefined,
): Promise<string | undefined> {
  const challenge = state === undefined ? undefined : await challenges.spendTicket(PURPOSE, state);
  return typeof challenge?.data?.returnTo === 'string' ? challenge.data.returnTo : undefined;
}

function isUsable(address: string, allowLoopback: boolean): boolean {
  return isHttpsOrLoopback(address) && (allowLoopback || new URL(address).protocol === 'https:');
}
