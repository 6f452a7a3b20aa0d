// The thread that folds, so that reading and writing whole snapshots never holds up the event loop.
import { setPriority } from 'node:os';
import { workerData } from 'node:worker_threads';
import { fold } from './lowdb-fold.ts';

yieldToRequests();
await fold(workerData);

/** Folding is in no hurry: where a processor is short, the thread that answers requests comes first. */
function yieldToRequests(): void {
  // On Linux the call is for the calling thread alone; elsewhere it would slow the whole process.
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, 10);
  } catch {
    // A sandbox may forbid it; folding at the common priority is no fault.
  }
}
