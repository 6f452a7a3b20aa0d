// Federated logout: ends the user's session at the identity provider, too (docs/reference/wire/logout.md: `federated`).
import type { Logger } from 'pino';
import type { Connection } from '../../records/collections.ts';
import type { UpstreamGrant } from '../../records/connections/identities.ts';
import { isHttpsOrLoopback } from '../../records/connections/upstream.ts';
import type { Config } from '../../tenant/config.ts';
import type { Users } from '../../users/users.ts';
import { openSession, type UpstreamDependencies, type UpstreamLogout, withQuery } from './redirect.ts';
import { strategyOf } from './strategies.ts';

interface LogoutDependencies extends UpstreamDependencies {
  config: Config;
  users: Pick<Users, 'identitiesOf'>;
  log: Logger;
}

interface EndingSession {
  userId: string;
  /** The name of the connection that the user logged in with, if known. */
  connection?: string | undefined;
  /** What the provider gave at the session's own login; if unknown, that of the user's last login there is used. */
  providerSession?: Readonly<Record<string, string>> | undefined;
}

/**
 * @param returnAddress where the provider is to send the browser afterwards.
 * @returns undefined when the connection has no logout at its provider, or the URL cannot be determined.
 */
export async function logoutAtProvider(
  deps: LogoutDependencies,
  { userId, connection: name, providerSession }: EndingSession,
  returnAddress: Pick<UpstreamLogout, 'returnTo' | 'callback' | 'state'>,
): Promise<string | undefined> {
  const connection = name === undefined ? undefined : await deps.config.connection(name);
  if (connection === undefined) return undefined;
  const strategy = strategyOf(connection);
  if (strategy === undefined) return configuredEndpoint(connection, returnAddress);
  if (strategy.page !== 'redirect') return undefined;
  const identities = await deps.users.identitiesOf(userId);
  const identity = identities.find((one) => one.connection === connection.name);
  const lastGrant: UpstreamGrant = identity?.upstream ?? {};
  try {
    const session = await openSession(deps, connection.name, providerSession);
    const { id_token = lastGrant.id_token, ...logout } = session ?? {};
    const grant =
      session === undefined
        ? lastGrant
        : { ...lastGrant, ...(id_token !== undefined && { id_token }), logout };
    return await strategy.logout(deps, { ...returnAddress, connection, grant });
  } catch (err) {
    // A failure at the provider must not keep the session here from ending.
    deps.log.warn(
      { err, connection: connection.name },
      'where to log out of an upstream provider is not known',
    );
    return undefined;
  }
}

/**
 * Returns the logout URL of a connection whose strategy is not built in: its option `logoutUrl` with `returnTo`, or the
 * `end_session_endpoint` of an OpenID provider (OpenID Connect RP-Initiated Logout 1.0 §2).
 */
function configuredEndpoint(
  { options }: Connection,
  { returnTo, callback, state }: Pick<UpstreamLogout, 'returnTo' | 'callback' | 'state'>,
): string | undefined {
  const { logoutUrl, client_id } = options;
  if (isAddress(logoutUrl)) return withQuery(logoutUrl, { returnTo });
  const { end_session_endpoint: discovered } = (options.oidc_metadata ?? {}) as Record<string, unknown>;
  const endSession = options.end_session_endpoint ?? discovered;
  if (!isAddress(endSession)) return undefined;
  const client = typeof client_id === 'string' ? { client_id } : {};
  return withQuery(endSession, { ...client, post_logout_redirect_uri: callback, state });
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && isHttpsOrLoopback(value);
}
