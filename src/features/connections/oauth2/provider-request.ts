// Requests to the endpoints of an OAuth 2.0 provider, and their errors. An error never includes what was sent, nor free text
// of an answer, because both may have secrets.
import type { AuthError } from '../../../http/errors.ts';
import { OutboundError } from '../../../http/outbound-error.ts';
import { isJsonObject } from '../../../runtime/json.ts';
import { FAILURES, type UpstreamDependencies, upstreamFault } from '../redirect.ts';

/** The name of an endpoint in error descriptions. */
type Endpoint = 'token endpoint' | 'profile endpoint';

/** A response with its body. */
export interface ProviderAnswer {
  response: Response;
  text: string;
}

/** Timeout of one request, milliseconds. */
const TIMEOUT = 10_000;
/** Bytes of a response body. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** Some providers reject requests without a User-Agent. */
export const USER_AGENT = 'Gatehouse';

/** Sends a request to an endpoint. @throws AuthError by {@link endpointFault} if there is no response, and for a redirect. */
export async function requestEndpoint(
  { fetch }: Pick<UpstreamDependencies, 'fetch'>,
  endpoint: Endpoint,
  url: string,
  request: Pick<RequestInit, 'method' | 'headers' | 'body'>,
): Promise<ProviderAnswer> {
  const unreachable = (thrown: unknown): never => {
    const failure = thrown instanceof OutboundError ? thrown.failure : 'unreachable';
    throw endpointFault(endpoint, FAILURES[failure], thrown);
  };
  const rules = { redirect: 'manual', timeout: TIMEOUT, maxBytes: MAX_ANSWER_BYTES } as const;
  const response = await fetch(url, { ...request, ...rules }).catch(unreachable);
  const text = await response.text().catch(unreachable);
  if (response.status >= 300 && response.status < 400) throw endpointFault(endpoint, 'redirects');
  return { response, text };
}

/** Returns the error of an endpoint. @param what follows the endpoint's name. @param cause goes to the server's own log only. */
export function endpointFault(endpoint: Endpoint, what: string, cause?: unknown): AuthError {
  return upstreamFault('invalid_request', `The identity provider's ${endpoint} ${what}.`, cause);
}

/**
 * Rejects a response that is an error.
 * @param error the member `error` of the response.
 * @param secrets those of the request, which the response may repeat.
 * @throws AuthError by {@link endpointFault}.
 */
export function refuseError(endpoint: Endpoint, error: unknown, secrets: readonly string[]): void {
  if (error === undefined || error === null || error === '' || error === false) return;
  throw endpointFault(endpoint, `answered with the error ${codeOf(error, secrets)}`);
}

/**
 * Returns the error code (RFC 6749 §5.2) of a response, which some providers put into an object. Anything that is not a code,
 * or that repeats a secret of the request, becomes `unknown`.
 */
function codeOf(error: unknown, secrets: readonly string[]): string {
  const code = isJsonObject(error) ? error.code : error;
  return typeof code === 'string' && /^[a-z][a-z_]{1,40}$/.test(code) && !secrets.includes(code)
    ? code
    : 'unknown';
}
