// Logout at an OAuth 2.0 provider. There is no standard for it, so the connection's options have the URL.
import { isHttpsOrLoopback } from '../../../records/logout.ts';
import type { OAuth2Options } from '../../../records/oauth2.ts';
import { type UpstreamDependencies, type UpstreamLogout, withQuery } from '../redirect.ts';

/**
 * Returns the logout URL: the option `logoutUrl`, or else the result of the script `getLogoutUrl`.
 * @returns undefined if the connection has neither, and for a result that is not an https (or loopback) URL.
 */
export async function logoutUrl(
  { runScript }: Pick<UpstreamDependencies, 'runScript'>,
  { logoutUrl: fixed, scripts }: OAuth2Options,
  { connection, returnTo }: UpstreamLogout,
): Promise<string | undefined> {
  if (fixed !== undefined && fixed !== '') return withQuery(fixed, { returnTo });
  const source = scripts.getLogoutUrl?.trim() ?? '';
  if (source === '') return undefined;
  const result = await runScript({
    connection,
    // A session has logins to several applications.
    clientId: undefined,
    name: 'getLogoutUrl',
    source,
    arguments: [{ returnTo }],
    secrets: [],
  });
  return typeof result === 'string' && isHttpsOrLoopback(result) ? result : undefined;
}
