// Times that depend on how busy a machine is.

/** How long is waited, milliseconds; what is not given is as in production. Injected by tests. */
export interface Waits {
  /** For what a key that is kept outside signs. */
  signature?: number;
  /** For a thread in which a script can run. */
  scriptThread?: number;
  /** Until a script that computes is ended, in time of the processor. */
  scriptCpu?: number;
  /** For what is found in the store's file. */
  search?: number;
}
