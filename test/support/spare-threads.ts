// Threads that the servers of a process use one after the other: to start one takes as much of a processor as a third of a
// server, and no test is about it but those of the threads themselves.
import type { Worker } from 'node:worker_threads';
import type { SpareThreads } from '../../src/runtime/spare-threads.ts';

/** Of one kind; further ones are ended. */
const MOST = 4;

const spare = new Map<string, Worker[]>();

export const SPARE_THREADS: SpareThreads = {
  take: (work) => {
    const thread = spare.get(work)?.pop();
    thread?.removeAllListeners('exit');
    return thread;
  },
  put: (work, thread) => {
    const kept = spare.get(work) ?? [];
    if (kept.length >= MOST) return void thread.terminate();
    spare.set(work, [...kept, thread]);
    thread.unref();
    thread.once('exit', () => {
      const others = (spare.get(work) ?? []).filter((one) => one !== thread);
      spare.set(work, others);
    });
  },
};
