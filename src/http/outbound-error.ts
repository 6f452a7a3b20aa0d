// Why a request of ours to somebody else failed.

/** What went wrong; `refused`: it may not be asked, and never was. */
export type OutboundFailure = 'refused' | 'unreachable' | 'timeout' | 'too-large' | 'redirects' | 'invalid';

/** A request that got no answer. Its message names the host alone: paths and queries may hold secrets. */
export class OutboundError extends Error {
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OutboundError';
    this.failure = failure;
  }
}
