// Metrics of the running server. Where metrics are off, the optional member of each dependency is undefined.

/**
 * Records measurements. Labels whose values could be unbounded say which values they may have. Times are in
 * seconds.
 */
export interface Measures {
  requestBegan(): void;
  /** @param route the declared path (`/u/:name`), never the requested one; undefined when there is none. */
  requestEnded(request: { method: string; route: string | undefined; status: number }, seconds: number): void;
  /**
   * @param type of a log event of the tenant, recorded or omitted.
   * @param strategy that of an existing connection.
   */
  event(type: string, strategy: string | undefined): void;
  /** @param grantType a registered one, or `implicit` for tokens from the authorization endpoint. */
  tokensIssued(grantType: string): void;
  /** Records a password hash. @param waited the time in the queue. @param took the time of the computation. */
  hashed(waited: number, took: number): void;
  storeOperation(operation: string, seconds: number): void;
  /** Records a request or message that a limit refused. @param limit a declared one. */
  limited(limit: string): void;
  /**
   * Records events that were sent to the receiver of a log stream.
   * @param isAccepted false when it did not accept the whole batch.
   */
  streamed(events: number, isAccepted: boolean): void;
  /** @param kind the name of the message's template. */
  message(kind: string, channel: 'email' | 'sms', outcome: 'sent' | 'failed'): void;
  /** Records a try to send a message that failed; there may be further tries. */
  messageTryFailed(channel: 'email' | 'sms'): void;
}
