// Runs scripts in threads of their own, which they wait for.
import type { JobSequence } from './messages.ts';
import { type Asker, createScriptQueue } from './script-queue.ts';
import type { JobOutcome, Thread } from './thread.ts';
import { createThreads, type ThreadsOptions } from './threads.ts';

interface Pool {
  /**
   * Runs a job sequence when there is a thread for it. The queue decides whose is next.
   * @returns the outcomes of the jobs that ran; undefined when there was no thread in time.
   */
  run(asker: Asker, sequence: JobSequence): Promise<JobOutcome[] | undefined>;
  close(): Promise<void>;
}

interface PoolOptions extends ThreadsOptions {
  /** How long a sequence waits for a thread, milliseconds. */
  waitMs: number;
}

/** How often the queue is served again while threads may be slow, milliseconds. */
const RETRY_MS = 50;

interface Waiting extends Asker {
  take(thread: Thread | undefined): void;
}

/** Makes the pool; nothing is loaded until the first job. */
export function createPool({ waitMs, ...options }: PoolOptions): Pool {
  const queue = createScriptQueue<Waiting>(Math.max(1, Math.ceil(options.most / 2)), (one) =>
    one.take(undefined),
  );
  let isClosed = false;

  /** Rejects everything in the queue, because another attempt to start a thread would fail, too. */
  const rejectAll = () => {
    for (const one of queue.clear()) one.take(undefined);
  };
  /** Gives ready threads to waiting sequences, and starts more threads where that is not enough. */
  const serve = () => {
    while (queue.runnable() > 0) {
      const thread = threads.take();
      if (thread === undefined) break;
      queue.next()?.take(thread);
    }
    if (queue.isIdle()) return;
    const runnable = queue.runnable();
    threads.provide(runnable);
    if (runnable > 0) serveLater();
  };
  const serveLater = oneTimer(() => isClosed || serve(), RETRY_MS);
  const threads = createThreads(options, (what) => (what === 'failed' ? rejectAll() : serve()));
  const acquire = (asker: Asker): Promise<Thread | undefined> => {
    if (isClosed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const take = (thread: Thread | undefined) => {
        clearTimeout(timer);
        if (thread !== undefined) queue.count(asker, 1);
        resolve(thread);
      };
      const one = { ...asker, take };
      const timer = setTimeout(() => queue.remove(one) && take(undefined), waitMs);
      if (queue.add(one)) serve();
      else take(undefined);
    });
  };
  return {
    run: async (asker, sequence) => {
      const thread = await acquire(asker);
      if (thread === undefined) return undefined;
      try {
        return await thread.run(sequence);
      } finally {
        queue.count(asker, -1);
        if (!isClosed) serve();
      }
    },
    close: async () => {
      isClosed = true;
      rejectAll();
      await threads.close();
    },
  };
}

/** Returns a function that starts a timer, unless it is running already. */
function oneTimer(work: () => void, ms: number): () => void {
  let timer: NodeJS.Timeout | undefined;
  const run = () => {
    timer = undefined;
    work();
  };
  return () => {
    if (timer === undefined) timer = setTimeout(run, ms).unref();
  };
}
