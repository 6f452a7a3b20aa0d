// The authorization request to an OAuth 2.0 provider (RFC 6749 §4.1.1), of a connection's options and of what the
// application's own request says.
import { createHash } from 'node:crypto';
import type { OAuth2Options } from '../../records/oauth2.ts';
import type { UpstreamRequest } from '../redirect.ts';

/** Parameters that are the protocol's own between us and the provider: no option and no application sets them. */
const RESERVED = new Set([
  'client_id',
  'client_secret',
  'code',
  'code_challenge',
  'code_challenge_method',
  'code_verifier',
  'iss',
  'nonce',
  'redirect_uri',
  'request',
  'request_uri',
  'response_mode',
  'response_type',
  'scope',
  'state',
]);

/** Standard parameters of the application's request that mean the same at the provider. */
const PASSED_ON = ['login_hint', 'prompt'] as const;

/** The address that the browser goes to. */
export function authorizationUrl(options: OAuth2Options, request: UpstreamRequest): string {
  const url = new URL(options.authorizationURL);
  const scope = scopeOf(options, request.params.connection_scope);
  const own = {
    response_type: 'code',
    client_id: options.client_id,
    redirect_uri: request.redirectUri,
    ...(scope !== '' && { scope }),
    state: request.state,
    ...(options.pkce_enabled && {
      code_challenge: createHash('sha256').update(request.codeVerifier).digest('base64url'),
      code_challenge_method: 'S256',
    }),
  };
  for (const [name, value] of Object.entries({ ...furtherParameters(options, request), ...own })) {
    url.searchParams.set(name, value);
  }
  return url.href;
}

/** The scopes of the connection, and those that the application asks for beside. */
function scopeOf({ scope, useOauthSpecScope }: OAuth2Options, asked: string | undefined): string {
  const own = Array.isArray(scope) ? scope : scope.split(' ');
  const beside = (asked ?? '').split(useOauthSpecScope ? ' ' : ',');
  const all = [...own, ...beside].map((one) => one.trim()).filter((one) => one !== '');
  return [...new Set(all)].join(' ');
}

/** What an option maps comes before what is fixed, and that before what the application adds: it cannot undo either. */
function furtherParameters(
  { authorizationURL, authParams, authParamsMap, upstream_params }: OAuth2Options,
  { params, additional }: UpstreamRequest,
): Record<string, string> {
  const given: Readonly<Record<string, string | undefined>> = { ...params, ...additional };
  const dynamic = Object.entries(upstream_params).flatMap(([name, to]) =>
    'alias' in to ? [[name, to.alias] as const] : [],
  );
  const mapped = [...Object.entries(authParamsMap), ...dynamic];
  const sources = new Set(mapped.map(([, source]) => source));
  const passedOn = PASSED_ON.filter((name) => params[name] !== 'none').map((name) => [name, params[name]]);
  // Nor can it undo what the operator wrote into the address itself.
  const written = new URL(authorizationURL).searchParams;
  const unmapped = [...Object.entries(additional), ...passedOn].filter(
    ([name]) => !sources.has(String(name)) && !written.has(String(name)),
  );
  const fixed = Object.entries(upstream_params).flatMap(([name, to]) =>
    'value' in to ? [[name, to.value] as const] : [],
  );
  const all = [
    ...unmapped,
    ...Object.entries(authParams),
    ...fixed,
    ...mapped.map(([name, source]) => [name, isForOthers(source) ? given[source] : undefined] as const),
  ];
  return Object.fromEntries(
    all.filter(
      (entry): entry is [string, string] =>
        typeof entry[0] === 'string' &&
        !RESERVED.has(entry[0]) &&
        typeof entry[1] === 'string' &&
        entry[1] !== '',
    ),
  );
}

/** What binds the application's request to the application is not for a provider, whatever the mapping says. */
function isForOthers(source: string): boolean {
  return !RESERVED.has(source) && !source.startsWith('gatehouse_');
}
