// Where a login begins anew, when somebody comes to the page of a login request that is over: by Back, by a bookmark, or after a
// long time. Only the application can begin it (OpenID Connect Core 1.0 §4).
// docs/understand/decisions/authorize.md#a-login-request-that-is-over-leads-back-to-its-application
import type { Context } from 'koa';
import { begunBy } from '../../http/begun-requests.ts';
import type { AuthError } from '../../http/errors.ts';
import { withParameters } from '../../http/server/body.ts';
import { loginAddressOf } from '../../records/clients/login-address.ts';
import type { Config } from '../../tenant/config.ts';

interface LoginRouteDependencies {
  config: Pick<Config, 'client' | 'settings'>;
  issuer: string;
}

const REQUEST_PATH = /^\/(?:u|authorize)\/([\w-]{43})(?:\/|$)/;

/**
 * Returns the address where the application begins a login (`initiate_login_uri`), else the tenant's
 * (`default_redirection_uri`), with `iss`.
 * @returns undefined for any other error, where there is no such address, and in a browser without cookies, whose next request
 *   would end in the same way.
 */
export async function loginRouteFor(
  { config, issuer }: LoginRouteDependencies,
  ctx: Context,
  { error, extra }: AuthError,
): Promise<string | undefined> {
  const uid = extra.reason === 'request_expired' ? REQUEST_PATH.exec(ctx.path)?.[1] : undefined;
  const clientId = uid === undefined ? ofUsedPushedRequest(ctx, error) : begunBy(ctx, uid);
  if (clientId === undefined) return undefined;
  const client = clientId === '' ? undefined : await config.client(clientId);
  // An application that is not the tenant's, such as the console, does not begin at the tenant's address.
  const byTenant = clientId === '' || client !== undefined;
  const own = client === undefined ? undefined : loginAddressOf(client);
  const address = own ?? (byTenant ? config.settings().tenant.default_redirection_uri : undefined);
  const url = URL.parse(address ?? '');
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  return withParameters(url.href, { iss: issuer });
}

/**
 * Returns the application of a pushed request that was used already (RFC 9126 §7.3): Back leads to its `request_uri` again, and
 * nothing of the request is left but the `client_id` beside it.
 */
function ofUsedPushedRequest(ctx: Context, error: string): string | undefined {
  const { request_uri: uri, client_id: clientId } = ctx.query;
  const isPushed = typeof uri === 'string' && uri.startsWith('urn:ietf:params:oauth:request_uri:');
  const isUsed = ctx.path === '/authorize' && error === 'invalid_request_uri' && isPushed;
  return isUsed && typeof clientId === 'string' && clientId !== '' ? clientId : undefined;
}
