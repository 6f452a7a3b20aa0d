// Logout at the upstream identity provider of a session (`federated`), and the way back.
import type { UserSession } from '../engine/user-session.ts';
import type { Challenges } from '../protection/challenges.ts';
import { isHttpsOrLoopback } from '../records/logout.ts';

export interface FederatedDependencies {
  /** Our public origin. */
  baseUrl: string;
  /** Whether providers may be on this machine, without TLS. */
  allowLoopback: boolean;
  challenges: Challenges;
  logoutAtProvider: LogoutAtProvider;
}

/** Where the browser is to come back to from a provider. */
interface ProviderLogout {
  /** The address, with `state` in its query. */
  returnTo: string;
  /** The address without it, for protocols that carry a state themselves. */
  callback: string;
  state: string;
}

/**
 * The address at which a session is ended at the provider that it came from, as its connection's strategy has it.
 * @returns undefined when there is none.
 */
type LogoutAtProvider = (session: UserSession, back: ProviderLogout) => Promise<string | undefined>;

/** Where identity providers send the browser back to; must be allowed there. */
export const CALLBACK = '/logout/callback';

const PURPOSE = 'federated_logout';
/** How long the provider's own pages may take, seconds. */
const TTL = 3600;

/**
 * The address at which the user logs out of the session's identity provider.
 * @param returnTo where the browser goes afterwards. Stored under a one-time `state`, never sent along, so that nobody
 *   can replace it.
 * @returns undefined when the session's connection has no logout address.
 */
export async function federatedLogout(
  deps: FederatedDependencies,
  session: UserSession,
  returnTo: string,
): Promise<string | undefined> {
  if (session.connection === undefined) return undefined;
  const { secret: state } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: session.sid,
    ttlSeconds: TTL,
    data: { returnTo },
  });
  const callback = `${deps.baseUrl}${CALLBACK}`;
  const back = { callback, state, returnTo: `${callback}?state=${state}` };
  const address = await deps.logoutAtProvider(session, back);
  if (address !== undefined && isUsable(address, deps.allowLoopback)) return address;
  await deps.challenges.discard(PURPOSE, session.sid);
  return undefined;
}

/** Takes the browser back. @returns where it goes; undefined when `state` is unknown or was used. */
export async function returnFromProvider(
  { challenges }: FederatedDependencies,
  state: string | undefined,
): Promise<string | undefined> {
  const met = state === undefined ? undefined : await challenges.spendTicket(PURPOSE, state);
  return typeof met?.data?.returnTo === 'string' ? met.data.returnTo : undefined;
}

function isUsable(address: string, allowLoopback: boolean): boolean {
  return isHttpsOrLoopback(address) && (allowLoopback || new URL(address).protocol === 'https:');
}
