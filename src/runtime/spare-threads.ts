// Worker threads that several servers in one process reuse one after the other; otherwise each starts and ends its
// own.
import type { Worker } from 'node:worker_threads';

/** Keeps threads that are idle and have no state, for later servers with the same work. */
export interface SpareThreads {
  take(work: string): Worker | undefined;
  put(work: string, thread: Worker): void;
}

/** Puts a thread back, and removes our listeners from it. */
export function putSpare(spare: SpareThreads, work: string, thread: Worker): void {
  // Not all listeners: Node.js has some of its own.
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
  spare.put(work, thread);
}
