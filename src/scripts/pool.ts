// Decides whose script runs next in a thread of its own. No tenant object, such as one connection, may take all
// threads.
import { type Counts, countByKey } from './counts.ts';
import type { JobSequence } from './messages.ts';
import type { JobOutcome, Thread } from './thread.ts';
import { createThreads, type ThreadsOptions } from './threads.ts';

interface Pool {
  /**
   * Runs a job sequence when there is a thread for it. Those whose key has the fewest sequences running come first.
   * @param key what the scripts belong to. One key may take neither all threads nor all places in the queue.
   * @returns the outcomes of the jobs that ran; undefined when there was no thread in time.
   */
  run(key: string, sequence: JobSequence): Promise<JobOutcome[] | undefined>;
  close(): Promise<void>;
}

interface PoolOptions extends ThreadsOptions {
  /** How long a sequence waits for a thread, milliseconds. */
  waitMs: number;
}

/** How many sequences wait at most. Further ones are rejected at once. */
const MAX_WAITING = 500;
/**
 * How many of them may have the same key: otherwise logins at one slow connection would keep out the scripts of all
 * others.
 */
const MAX_WAITING_PER_KEY = 250;
/** How often the queue is served again while threads may be slow, milliseconds. */
const RETRY_MS = 50;

interface Waiting {
  key: string;
  take(thread: Thread | undefined): void;
}

/** Makes the pool; nothing is loaded until the first job. */
export function createPool({ waitMs, ...options }: PoolOptions): Pool {
  const running = countByKey();
  const waiting: Waiting[] = [];
  const maxPerKey = Math.max(1, Math.ceil(options.most / 2));
  let isClosed = false;

  const mayRun = ({ key }: { key: string }) => running.of(key) < maxPerKey;
  /** Rejects everything in the queue, because another attempt to start a thread would fail, too. */
  const rejectAll = () => {
    for (const one of waiting.splice(0)) one.take(undefined);
  };
  /** Gives ready threads to waiting sequences, and starts more threads where that is not enough. */
  const serve = () => {
    for (
      let next = nextOf(waiting, running, maxPerKey);
      next >= 0;
      next = nextOf(waiting, running, maxPerKey)
    ) {
      const thread = threads.take();
      if (thread === undefined) break;
      waiting.splice(next, 1)[0]?.take(thread);
    }
    if (waiting.length === 0 && running.isEmpty()) return;
    const runnable = waiting.filter(mayRun).length;
    threads.provide(runnable);
    if (runnable > 0) serveLater();
  };
  const serveLater = oneTimer(() => isClosed || serve(), RETRY_MS);
  const threads = createThreads(options, (what) => (what === 'failed' ? rejectAll() : serve()));
  const acquire = (key: string): Promise<Thread | undefined> => {
    if (isClosed || isFull(waiting, key)) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const take = (thread: Thread | undefined) => {
        clearTimeout(timer);
        if (thread !== undefined) running.add(key, 1);
        resolve(thread);
      };
      const one = { key, take };
      const giveUp = () => waiting.splice(waiting.indexOf(one), 1)[0]?.take(undefined);
      const timer = setTimeout(giveUp, waitMs);
      waiting.push(one);
      serve();
    });
  };
  return {
    run: async (key, sequence) => {
      const thread = await acquire(key);
      if (thread === undefined) return undefined;
      try {
        return await thread.run(sequence);
      } finally {
        running.add(key, -1);
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

/** Reports whether the queue is full for a key. */
function isFull(waiting: readonly Waiting[], key: string): boolean {
  if (waiting.length < MAX_WAITING_PER_KEY) return false;
  const waitingOfKey = waiting.filter((one) => one.key === key).length;
  return waiting.length >= MAX_WAITING || waitingOfKey >= MAX_WAITING_PER_KEY;
}

/**
 * Finds the sequence that is next: the first of the key with the fewest running.
 * @returns its index; -1 where every key has as many running as it may.
 */
function nextOf(waiting: readonly Waiting[], running: Pick<Counts, 'of'>, most: number): number {
  let next = -1;
  let fewest = most;
  for (const [index, { key }] of waiting.entries()) {
    if (running.of(key) >= fewest) continue;
    [next, fewest] = [index, running.of(key)];
    if (fewest === 0) break;
  }
  return next;
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
