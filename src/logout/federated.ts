// Logout at the upstream identity provider of a session (spec "Logout": `federated`), and the way back.
import type { UserSession } from '../engine/sessions.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { Connection } from '../records/collections.ts';
import { isHttpsOrLoopback } from '../records/logout.ts';
import type { Config } from '../tenant/config.ts';

export interface FederatedDependencies {
  /** Our public origin. */
  baseUrl: string;
  /** Whether providers may be on this machine, without TLS. */
  allowLoopback: boolean;
  config: Config;
  challenges: Challenges;
}

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
  const connection =
    session.connection === undefined ? undefined : await deps.config.connection(session.connection);
  const endpoint = connection === undefined ? undefined : logoutEndpoint(connection, deps.allowLoopback);
  if (endpoint === undefined) return undefined;
  const { secret: state } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: session.sid,
    ttlSeconds: TTL,
    data: { returnTo },
  });
  return endpoint(`${deps.baseUrl}${CALLBACK}`, state);
}

/** Takes the browser back. @returns where it goes; undefined when `state` is unknown or was used. */
export async function returnFromProvider(
  { challenges }: FederatedDependencies,
  state: string | undefined,
): Promise<string | undefined> {
  const met = state === undefined ? undefined : await challenges.spendTicket(PURPOSE, state);
  return typeof met?.data?.returnTo === 'string' ? met.data.returnTo : undefined;
}

type Endpoint = (callback: string, state: string) => string;

/**
 * A connection's logout address by its options: `logoutUrl` for any strategy, given `returnTo`; the
 * `end_session_endpoint` of an OpenID provider (OpenID Connect RP-Initiated Logout 1.0 §2).
 * @returns undefined when there is none, or it is not https.
 */
function logoutEndpoint(connection: Connection, allowLoopback: boolean): Endpoint | undefined {
  const { options, strategy } = connection;
  const own = usable(options.logoutUrl, allowLoopback);
  if (own !== undefined) {
    return (callback, state) => withQuery(own, { returnTo: withQuery(new URL(callback), { state }) });
  }
  if (strategy !== 'oidc') return undefined;
  const { end_session_endpoint: discovered } = (options.oidc_metadata ?? {}) as Record<string, unknown>;
  const endSession = usable(options.end_session_endpoint ?? discovered, allowLoopback);
  if (endSession === undefined) return undefined;
  const client = typeof options.client_id === 'string' ? { client_id: options.client_id } : {};
  return (callback, state) => withQuery(endSession, { ...client, post_logout_redirect_uri: callback, state });
}

function usable(address: unknown, allowLoopback: boolean): URL | undefined {
  if (typeof address !== 'string' || !isHttpsOrLoopback(address)) return undefined;
  const url = new URL(address);
  return url.protocol === 'https:' || allowLoopback ? url : undefined;
}

function withQuery(address: URL, parameters: Record<string, string>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}
