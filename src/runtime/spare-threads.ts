// Threads for several servers in one process, one after the other: each starts and ends its own otherwise.
import type { Worker } from 'node:worker_threads';

/** Keeps threads whose work has ended, and who know nothing of it any more, for others who have the same work. */
export interface SpareThreads {
  take(work: string): Worker | undefined;
  put(work: string, thread: Worker): void;
}

/** Gives a thread away: it is heard no more. */
export function putSpare(spare: SpareThreads, work: string, thread: Worker): void {
  // Not all: Node.js has listeners of its own.
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
  spare.put(work, thread);
}
