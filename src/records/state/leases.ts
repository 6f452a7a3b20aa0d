// Leases: which process does work that only one process does at a time.
import type { Stored } from '../base/record.ts';

/**
 * A lease; `id` names the work. The record expires long after `until`, so that a process with a wrong clock still
 * sees it. Also the turn of `writeInTurn`; `holder` is then a random value that changes with each batch, and `until` 0.
 */
export interface LeaseRecord extends Stored {
  /** The process that holds the lease. */
  holder: string;
  /** End of the lease, in epoch milliseconds of the clock that all processes share. */
  until: number;
}

/** Attempts that are being verified, for one count of failed attempts; `id` is the count's. */
export interface TriesRecord extends Stored {
  /** For each attempt, until when it counts, in epoch milliseconds of the clock that all processes share. */
  judged: Record<string, number>;
}
