// What is measured while the server works. Nobody is told where metrics are off: each place has it as an optional member.

/** Takes measurements; what a label may be is said where it would otherwise be without bound. Times are in seconds. */
export interface Measures {
  requestBegan(): void;
  /** @param route the declared path (`/u/:name`), never the one that was sent; undefined where there is none. */
  requestEnded(request: { method: string; route: string | undefined; status: number }, seconds: number): void;
  /** @param event of the tenant's log, recorded or left out; `strategy` is that of a connection that exists. */
  event(type: string, strategy: string | undefined): void;
  /** @param grantType one that is registered, or `implicit` for those of the authorization endpoint. */
  tokensIssued(grantType: string): void;
  /** A password hash: how long it waited for its turn, and then took. */
  hashed(waited: number, took: number): void;
  storeOperation(operation: string, seconds: number): void;
  /** A request or message that a limit refused. @param limit a declared one. */
  limited(limit: string): void;
  /** Events that a log stream's receiver has taken. @param isGood false when it did not take the whole batch. */
  streamed(events: number, isGood: boolean): void;
  /** @param kind of the message, as templates have it. */
  message(kind: string, channel: 'email' | 'sms', outcome: 'sent' | 'failed'): void;
}
