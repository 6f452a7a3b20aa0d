// What an authorization request to a provider has beyond the protocol's own parameters: what the connection's options fix
// or map, and what the application adds.
import type { UpstreamRequest } from './redirect.ts';

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

/** The options that say so. */
interface FurtherOptions {
  /** Fixed ones. */
  authParams?: Readonly<Record<string, string>>;
  /** The names of those of the application's request, by the provider's. */
  authParamsMap?: Readonly<Record<string, string>>;
  upstream_params: Readonly<Record<string, { value: string } | { alias: string }>>;
}

/**
 * Further parameters. What an option maps comes before what is fixed, and that before what the application adds: it cannot
 * undo either, nor what the operator wrote into the address itself.
 * @param address where the request goes.
 */
export function furtherParameters(
  { authParams = {}, authParamsMap = {}, upstream_params }: FurtherOptions,
  { params, additional }: Pick<UpstreamRequest, 'params' | 'additional'>,
  address: URL,
): Record<string, string> {
  const given: Readonly<Record<string, string | undefined>> = { ...params, ...additional };
  const dynamic = Object.entries(upstream_params).flatMap(([name, to]) =>
    'alias' in to ? [[name, to.alias] as const] : [],
  );
  const mapped = [...Object.entries(authParamsMap), ...dynamic];
  const sources = new Set(mapped.map(([, source]) => source));
  const passedOn = PASSED_ON.filter((name) => params[name] !== 'none').map((name) => [name, params[name]]);
  const unmapped = [...Object.entries(additional), ...passedOn].filter(
    ([name]) => !sources.has(String(name)) && !address.searchParams.has(String(name)),
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
