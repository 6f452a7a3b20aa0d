// Requests to the endpoints of an OAuth 2.0 provider, and what is told of those that give no answer: no fault says what was
// sent, or repeats free text of an answer.
import type { AuthError } from '../../http/errors.ts';
import { OutboundError } from '../../http/outbound-error.ts';
import { FAILURES, type UpstreamDependencies, upstreamFault } from '../redirect.ts';

/** What the application is told was asked. */
type Endpoint = 'token endpoint' | 'profile endpoint';

/** An answer, read. */
export interface ProviderAnswer {
  response: Response;
  text: string;
}

/** Time for one request, milliseconds. */
const TIMEOUT = 10_000;
/** Bytes of an answer. */
const LARGEST_ANSWER = 256 * 1024;
/** Some providers answer nobody without one. */
export const USER_AGENT = 'Gatehouse';

/** Asks an endpoint. @throws AuthError by {@link endpointFault}, also for an answer that redirects. */
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
  const rules = { redirect: 'manual', timeout: TIMEOUT, maxBytes: LARGEST_ANSWER } as const;
  const response = await fetch(url, { ...request, ...rules }).catch(unreachable);
  const text = await response.text().catch(unreachable);
  if (response.status >= 300 && response.status < 400) throw endpointFault(endpoint, 'redirects');
  return { response, text };
}

/** A fault of an endpoint. @param what after its name. @param cause for the server's own log. */
export function endpointFault(endpoint: Endpoint, what: string, cause?: unknown): AuthError {
  return upstreamFault('invalid_request', `The identity provider's ${endpoint} ${what}.`, cause);
}

/**
 * Refuses an answer that is an error.
 * @param error its member `error`. @param sent secrets that it may repeat. @throws AuthError by {@link endpointFault}.
 */
export function refuseError(endpoint: Endpoint, error: unknown, sent: readonly string[]): void {
  if (error === undefined || error === null || error === '' || error === false) return;
  throw endpointFault(endpoint, `answered with the error ${codeOf(error, sent)}`);
}

/**
 * An error code (RFC 6749 §5.2), and nothing that may repeat what was sent: free text, or a secret in its place. Some
 * providers name it in an object.
 */
function codeOf(error: unknown, sent: readonly string[]): string {
  const code = typeof error === 'object' && error !== null ? (error as Record<string, unknown>).code : error;
  return typeof code === 'string' && /^[a-z][a-z_]{1,40}$/.test(code) && !sent.includes(code)
    ? code
    : 'unknown';
}
