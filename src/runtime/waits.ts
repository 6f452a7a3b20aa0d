// Times that depend on how busy a machine is.

/** How long to wait, milliseconds; a missing member means the value of production. Tests inject their own. */
export interface Waits {
  /** For a signature by an external key service. */
  signature?: number;
  /** For a free thread to run a script in. */
  scriptThread?: number;
  /** Until a running script is ended, in processor time. */
  scriptCpu?: number;
  /** For an answer of the old tenant of a move. */
  oldTenant?: number;
  /** For a search in the store's file. */
  search?: number;
}
