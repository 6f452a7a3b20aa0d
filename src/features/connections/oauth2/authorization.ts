// The authorization request to an OAuth 2.0 provider (RFC 6749 §4.1.1), built from a connection's options and the application's
// own request.

import type { OAuth2Options } from '../../../records/oauth2.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import { furtherParameters } from '../further-parameters.ts';
import type { UpstreamRequest } from '../redirect.ts';

/** Returns the URL of the authorization request. */
export function authorizationUrl(options: OAuth2Options, request: UpstreamRequest): string {
  const url = new URL(options.authorizationURL);
  const scope = scopeOf(options, request);
  const standard = {
    response_type: 'code',
    client_id: options.client_id,
    redirect_uri: request.redirectUri,
    ...(scope !== '' && { scope }),
    state: request.state,
    ...(options.pkce_enabled && {
      code_challenge: sha256(request.codeVerifier),
      code_challenge_method: 'S256',
    }),
  };
  for (const [name, value] of Object.entries({ ...furtherParameters(options, request, url), ...standard })) {
    url.searchParams.set(name, value);
  }
  return url.href;
}

/**
 * Returns the scopes of the connection, and those that the application requests in addition (`connection_scope`), which SDKs
 * join by commas and people by spaces. With additional ones the list is separated as the connection says; without, by spaces
 * (RFC 6749 §3.3).
 */
function scopeOf(
  { scope, useOauthSpecScope }: OAuth2Options,
  { params: { connection_scope: requested = '' }, listsScopes }: UpstreamRequest,
): string {
  const configured = Array.isArray(scope) ? scope : scope.split(' ');
  const additional = requested.split(/[\s,]+/).filter((one) => one !== '');
  const all = [...configured, ...additional].map((one) => one.trim()).filter((one) => one !== '');
  return [...new Set(all)].join(additional.length === 0 || useOauthSpecScope || listsScopes ? ' ' : ',');
}
