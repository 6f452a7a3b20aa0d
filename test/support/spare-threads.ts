// Worker threads that the servers of a process reuse: starting one takes a third of the processor time of a server's
// start, and only the tests of the threads themselves are about it.
import type { Worker } from 'node:worker_threads';
import type { SpareThreads } from '../../src/runtime/spare-threads.ts';

/** The maximum number kept of each kind; further ones are ended. */
const MAX = 4;

const spare = new Map<string, Worker[]>();

export const SPARE_THREADS: SpareThreads = {
  take: (work) => {
    const thread = spare.get(work)?.pop();
    thread?.removeAllListeners('exit');
    return thread;
  },
  put: (work, thread) => {
    const kept = spare.get(work) ?? [];
    if (kept.length >= MAX) return void thread.terminate();
    spare.set(work, [...kept, thread]);
    thread.unref();
    thread.once('exit', () => {
      const others = (spare.get(work) ?? []).filter((one) => one !== thread);
      spare.set(work, others);
    });
  },
};
