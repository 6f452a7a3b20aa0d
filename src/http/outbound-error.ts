// Why a request of ours to somebody else failed.

/** What went wrong; `refused`: it may not be asked, and never was. */
export type OutboundFailure = 'refused' | 'unreachable' | 'timeout' | 'too-large' | 'redirects' | 'invalid';

/** What a fault came of: the failure of a request, of this error or of what caused it; undefined where it was none. */
export function outboundFailureOf(fault: unknown): OutboundFailure | undefined {
  let one = fault;
  // A cause may be its own.
  for (let depth = 0; depth < 5 && one instanceof Error; depth += 1) {
    if (one instanceof OutboundError) return one.failure;
    one = one.cause;
  }
  return undefined;
}

/** A request that got no answer. Its message names the host alone: paths and queries may hold secrets. */
export class OutboundError extends Error {
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OutboundError';
    this.failure = failure;
  }
}
