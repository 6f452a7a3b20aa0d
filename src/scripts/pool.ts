// Whose script runs next: one script in a thread at a time, and nobody's scripts in all of them.
import type { Job, JobOutcome, Thread } from './thread.ts';
import { createThreads, type ThreadsOptions } from './threads.ts';

export interface Pool {
  /**
   * Runs a job when there is a thread for it.
   * @param key whose it is: nobody's may take all threads.
   * @returns undefined when there was none in time.
   */
  run(key: string, job: Job): Promise<JobOutcome | undefined>;
  close(): Promise<void>;
}

interface PoolOptions extends ThreadsOptions {
  /** How long a job waits for a thread, milliseconds. */
  waitMs: number;
}

/** Jobs that wait at most: further ones are turned away at once. */
const MOST_WAITING = 200;

interface Waiting {
  key: string;
  take(thread: Thread | undefined): void;
}

/** The pool; nothing is loaded until the first job. */
export function createPool({ waitMs, ...options }: PoolOptions): Pool {
  const running = new Map<string, number>();
  const waiting: Waiting[] = [];
  const mostOfOne = Math.max(1, Math.ceil(options.most / 2));
  let isClosed = false;

  const mayRun = ({ key }: { key: string }) => (running.get(key) ?? 0) < mostOfOne;
  /** Another try for those who wait would end as the one that has failed. */
  const turnAway = () => {
    for (const one of waiting.splice(0)) one.take(undefined);
  };
  /** Gives ready threads to those who wait, and has more started where that is not enough. */
  const serve = () => {
    for (let next = waiting.findIndex(mayRun); next >= 0; next = waiting.findIndex(mayRun)) {
      const thread = threads.take();
      if (thread === undefined) break;
      waiting.splice(next, 1)[0]?.take(thread);
    }
    // One more than is needed: it takes a while to start one, and what runs may never let go of its thread.
    if (waiting.length + running.size > 0) threads.provide(waiting.filter(mayRun).length + 1);
  };
  const threads = createThreads(options, (what) => (what === 'failed' ? turnAway() : serve()));
  const count = (key: string, more: number) => {
    const now = (running.get(key) ?? 0) + more;
    if (now > 0) running.set(key, now);
    else running.delete(key);
  };
  const acquire = (key: string): Promise<Thread | undefined> => {
    if (isClosed || waiting.length >= MOST_WAITING) return Promise.resolve(undefined);
    const { promise, resolve } = Promise.withResolvers<Thread | undefined>();
    const take = (thread: Thread | undefined) => {
      clearTimeout(timer);
      if (thread !== undefined) count(key, 1);
      resolve(thread);
    };
    const one = { key, take };
    const timer = setTimeout(() => {
      waiting.splice(waiting.indexOf(one), 1);
      take(undefined);
    }, waitMs);
    waiting.push(one);
    serve();
    return promise;
  };
  return {
    run: async (key, job) => {
      const thread = await acquire(key);
      if (thread === undefined) return undefined;
      try {
        return await thread.run(job);
      } finally {
        count(key, -1);
        threads.release(thread);
        if (!isClosed) serve();
      }
    },
    close: async () => {
      isClosed = true;
      turnAway();
      await threads.close();
    },
  };
}
