// What a machine that is busy does late.

/** How long is waited for it, milliseconds; what is not given is as in production. Injected by tests. */
export interface Waits {
  /** For what a key that is kept outside signs. */
  signature?: number;
  /** For a thread in which a script can run. */
  scriptThread?: number;
  /** For what is found in the store's file. */
  search?: number;
}
