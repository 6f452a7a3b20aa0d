// Errors of requests to a provider, for the application and for the log. They never include what was sent or received.

import { AuthError } from '../../../http/errors.ts';
import { OutboundError, outboundFailureOf } from '../../../http/outbound/outbound-error.ts';
import { FAILURES, upstreamFault } from '../redirect.ts';

/**
 * Returns a handler for exceptions of a request to a provider, which throws the AuthError of `upstreamFault`.
 * @param what the name of the endpoint or document, for the description.
 */
export function providerFault(what: string): (thrown: unknown) => never {
  return (thrown) => {
    if (thrown instanceof AuthError) throw thrown;
    throw upstreamFault(
      'invalid_request',
      `The identity provider's ${what} ${problemOf(thrown)}.`,
      messagesOnly(thrown),
    );
  };
}

function problemOf(thrown: unknown): string {
  const failure = outboundFailureOf(thrown);
  if (failure !== undefined) return FAILURES[failure];
  const { error } = (thrown ?? {}) as { error?: unknown };
  if (typeof error === 'string' && /^[\w.-]{1,64}$/.test(error)) return `answered with the error ${error}`;
  return 'sent no valid answer';
}

function causes(thrown: unknown): unknown[] {
  const all: unknown[] = [];
  for (let one = thrown; one !== undefined && all.length < 5; one = (one as { cause?: unknown })?.cause) {
    all.push(one);
  }
  return all;
}

/** Returns an error for the log that has messages only: errors of the library have whole responses, tokens included. */
function messagesOnly(thrown: unknown): Error {
  const messages = causes(thrown).flatMap((one) => (one instanceof Error ? [one.message] : []));
  const [failure, message] = [outboundFailureOf(thrown), messages.join(': ')];
  return failure === undefined ? new Error(message) : new OutboundError(failure, message);
}
