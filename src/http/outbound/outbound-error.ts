// The errors of requests that this server sends to others.

/** The kinds of failure. `refused` means that the rules forbid the address and nothing was sent. */
export type OutboundFailure = 'refused' | 'unreachable' | 'timeout' | 'too-large' | 'redirects' | 'invalid';

/** Returns the failure of an OutboundError among an error and its causes; undefined when there is none. */
export function outboundFailureOf(fault: unknown): OutboundFailure | undefined {
  let one = fault;
  // The depth is bounded because an error may be its own cause.
  for (let depth = 0; depth < 5 && one instanceof Error; depth += 1) {
    if (one instanceof OutboundError) return one.failure;
    one = one.cause;
  }
  return undefined;
}

/** A request that got no usable answer. Its message names the host only: paths and queries may hold secrets. */
export class OutboundError extends Error {
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OutboundError';
    this.failure = failure;
  }
}
