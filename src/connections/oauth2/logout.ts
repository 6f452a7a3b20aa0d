// Where the session at an OAuth 2.0 provider is ended: there is no standard for it, so the connection says where.
import { isHttpsOrLoopback } from '../../records/logout.ts';
import type { OAuth2Options } from '../../records/oauth2.ts';
import { type UpstreamDependencies, type UpstreamLogout, withQuery } from '../redirect.ts';

/** @returns `logoutUrl`, else what the script `getLogoutUrl` says; undefined where the connection has neither. */
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
    name: 'getLogoutUrl',
    source,
    arguments: [{ returnTo }],
    secrets: [],
  });
  return typeof result === 'string' && isHttpsOrLoopback(result) ? result : undefined;
}
