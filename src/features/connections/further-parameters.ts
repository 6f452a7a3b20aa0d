// Additional parameters of an authorization request to a provider: the connection's options set some of them, and the
// application's own request adds others.
import { isCredentialName } from '../../http/credential-names.ts';
import type { UpstreamRequest } from './redirect.ts';

/**
 * Parameters of OAuth 2.0 and OpenID Connect that the strategy itself sets, or that belong to the application's own request;
 * neither an option nor an application may set them.
 */
const RESERVED = new Set([
  'client_id',
  'client_secret',
  'code',
  'code_challenge',
  'code_challenge_method',
  'code_verifier',
  'dpop_jkt',
  'id_token_hint',
  'invitation',
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

/** Standard parameters of the application's request that are forwarded, because they mean the same at the provider. */
const FORWARDED = ['login_hint', 'prompt'] as const;

/** The options of a connection that set additional parameters. */
interface FurtherOptions {
  /** Fixed values, by parameter name. */
  authParams?: Readonly<Record<string, string>>;
  /** Provider's parameter name to the name of the parameter of the application's request that has the value. */
  authParamsMap?: Readonly<Record<string, string>>;
  upstream_params: Readonly<Record<string, { value: string } | { alias: string }>>;
}

/**
 * Returns the additional parameters of an authorization request to a provider. A mapped value takes precedence over a fixed
 * one, and both over what the application adds; the application cannot override the query of the configured address either.
 * @param address the provider's authorization endpoint, as configured.
 */
export function furtherParameters(
  { authParams = {}, authParamsMap = {}, upstream_params }: FurtherOptions,
  { params, additional }: Pick<UpstreamRequest, 'params' | 'additional'>,
  address: URL,
): Record<string, string> {
  const requestParameters: Readonly<Record<string, string | undefined>> = { ...params, ...additional };
  const dynamic = Object.entries(upstream_params).flatMap(([name, setting]) =>
    'alias' in setting ? [[name, setting.alias] as const] : [],
  );
  const mapped = [...Object.entries(authParamsMap), ...dynamic];
  const sources = new Set(mapped.map(([, source]) => source));
  const forwarded = FORWARDED.filter((name) => params[name] !== 'none').map((name) => [name, params[name]]);
  const unmapped = [...Object.entries(additional), ...forwarded].filter(
    ([name]) =>
      mayForward(String(name)) && !sources.has(String(name)) && !address.searchParams.has(String(name)),
  );
  const fixed = Object.entries(upstream_params).flatMap(([name, setting]) =>
    'value' in setting ? [[name, setting.value] as const] : [],
  );
  const all = [
    ...unmapped,
    ...Object.entries(authParams),
    ...fixed,
    ...mapped.map(
      ([name, source]) => [name, mayForward(source) ? requestParameters[source] : undefined] as const,
    ),
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

/**
 * Whether a parameter of the application's request may be forwarded to a provider. Its `state`, `nonce` and the like,
 * credentials and our own parameters may not, even if the options map them.
 */
export function mayForward(source: string): boolean {
  return !RESERVED.has(source) && !isCredentialName(source) && !source.startsWith('gatehouse_');
}
