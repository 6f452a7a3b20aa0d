// The authentication request to an OpenID provider (OpenID Connect Core 1.0 §3.1.2.1).

import type { OpenIdOptions } from '../../../records/connections/openid.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import { asksForLogin, furtherParameters, type UpstreamRequest } from '../redirect.ts';
import { endpointOf, type OpenIdConnection } from './connection.ts';

/** Returns the URL of the authentication request. @throws AuthError by `upstreamFault` if there is no authorization endpoint. */
export function authorizationUrl<Options extends OpenIdOptions>(
  connection: OpenIdConnection<Options>,
  request: UpstreamRequest,
): string {
  const { preset, options, clientId, metadata, isFrontChannel } = connection;
  const url = new URL(endpointOf(metadata, 'authorization_endpoint'));
  const responseMode = isFrontChannel ? 'form_post' : preset.responseMode;
  const standard = {
    response_type: isFrontChannel ? 'id_token' : 'code',
    ...(responseMode !== undefined && { response_mode: responseMode }),
    client_id: clientId,
    redirect_uri: request.redirectUri,
    scope: scopeOf(connection, request.params.connection_scope),
    state: request.state,
    ...maxAge(request.params),
    ...(sendsNonce(connection) && { nonce: request.nonce }),
    ...pkceChallenge(pkceMethod(connection), request.codeVerifier),
    ...preset.parameters?.(options),
  };
  for (const [name, value] of Object.entries({ ...furtherParameters(options, request, url), ...standard })) {
    url.searchParams.set(name, value);
  }
  return url.href;
}

// docs/understand/decisions/connections.md#max_age-is-passed-on-to-the-provider-and-its-auth_time-is-checked-if-it-sends-one
/**
 * Returns `max_age`, if the authentication at the provider has to be recent. It is sent in addition to `prompt=login`, because
 * the ID token then has `auth_time` (OpenID Connect Core 1.0 §3.1.2.1), by which the new authentication can be checked.
 */
function maxAge({ max_age, prompt }: UpstreamRequest['params']): { max_age?: string } {
  if (max_age !== undefined) return { max_age };
  return asksForLogin(prompt) ? { max_age: '0' } : {};
}

/** Whether the request has a nonce, which the ID token must then have, too. */
export function sendsNonce<Options extends OpenIdOptions>({
  options,
  isFrontChannel,
}: Pick<OpenIdConnection<Options>, 'options' | 'isFrontChannel'>): boolean {
  return isFrontChannel || options.send_back_channel_nonce;
}

/** Returns the PKCE challenge method of a connection (RFC 7636); undefined if it does not use PKCE. */
export function pkceMethod<Options extends OpenIdOptions>({
  options,
  metadata,
  isFrontChannel,
}: OpenIdConnection<Options>): 'S256' | 'plain' | undefined {
  const { pkce } = options.connection_settings;
  if (isFrontChannel || pkce === 'disabled') return undefined;
  if (pkce !== 'auto') return pkce;
  // A provider without PKCE ignores the parameters (RFC 6749 §3.1), so they are sent to every provider.
  // docs/understand/decisions/connections.md#pkce-auto-means-s256-even-if-the-discovery-document-does-not-list-it
  const supported = metadata.code_challenge_methods_supported;
  return supported?.includes('plain') && !supported.includes('S256') ? 'plain' : 'S256';
}

function pkceChallenge(method: 'S256' | 'plain' | undefined, verifier: string): Record<string, string> {
  if (method === undefined) return {};
  const code_challenge = method === 'plain' ? verifier : sha256(verifier);
  return { code_challenge, code_challenge_method: method };
}

function scopeNames(scopes: string | readonly string[] | undefined): string[] {
  return [scopes ?? []].flat().flatMap((one) => one.split(/[\s,]+/));
}

/** Returns `openid`, the scopes of the connection, and those that the application requests in addition. */
function scopeOf<Options extends OpenIdOptions>(
  { preset, options }: Pick<OpenIdConnection<Options>, 'preset' | 'options'>,
  requested = '',
): string {
  const { scope, freeform_scopes, attribute_map } = options;
  const scopeOptions = Object.entries(preset.scopes ?? {});
  const disabled = new Set(scopeOptions.flatMap(([option, one]) => (options[option] === false ? [one] : [])));
  const defaults = preset.scope.split(' ').filter((one) => !disabled.has(one));
  const enabled = scopeOptions.flatMap(([option, one]) => (options[option] === true ? [one] : []));
  const configured = scope === undefined ? defaults : [scope].flat().flatMap((one) => one.split(' '));
  const all = [
    'openid',
    ...configured,
    ...enabled,
    ...scopeNames(freeform_scopes),
    ...(preset.furtherScopes?.(options) ?? []),
    ...attribute_map.userinfo_scope.split(' '),
    ...requested.split(/[ ,]/),
  ];
  return [...new Set(all.filter((one) => one !== ''))].join(' ');
}
