// Runs scripts in threads of their own, which they wait for.

import { keepLatest } from '../../runtime/latest.ts';
import { countByKey } from './requests.ts';
import type { JobSequence } from './scripts-messages.ts';
import type { JobOutcome, Thread } from './threads.ts';
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

// The scripts that wait for a thread of their own, and which of them is next: no tenant object takes all threads from the
// others, and no application takes all threads of one object from other applications.
// docs/understand/decisions/actions-scripts.md#one-connection-can-use-at-most-half-of-the-threads

interface Asker {
  /** What the scripts belong to. */
  key: string;
  /** Whose request it is; empty for the server's own work. */
  askedBy: string;
}

interface ScriptQueue<T extends Asker> {
  /**
   * Adds a script, in place of one of whoever has the most there where the queue is full.
   * @returns false when it has no place.
   */
  add(one: T): boolean;
  /** @returns whether it was there. */
  remove(one: T): boolean;
  /** Takes out the script that is next; undefined where none may run now. */
  next(): T | undefined;
  /** How many of them may run now. */
  runnable(): number;
  /** Whether none waits and none runs. */
  isIdle(): boolean;
  /** Takes all out. */
  clear(): T[];
  count(asker: Asker, more: 1 | -1): void;
}

/** How many scripts wait at most. */
const MAX_WAITING = 500;
/** How many of them may belong to the same object. */
const MAX_WAITING_PER_KEY = 250;
/** The share of an object's threads that one application leaves to the others. */
const RESERVED_SHARE = 0.25;
/** How many askers are remembered as served. */
const MAX_SERVED = 1_000;

const shareOf = ({ key, askedBy }: Asker): string => JSON.stringify([key, askedBy]);

/**
 * @param maxPerKey how many scripts of one object may run at once.
 * @param drop called with a script that loses its place.
 */
function createScriptQueue<T extends Asker>(maxPerKey: number, drop: (one: T) => void): ScriptQueue<T> {
  const waiting: T[] = [];
  const [running, runningByShare] = [countByKey(), countByKey()];
  /** When an asker last had a thread: the number of the turn. */
  const served = new Map<string, number>();
  let turn = 0;
  const maxPerShare = Math.max(1, maxPerKey - Math.ceil(maxPerKey * RESERVED_SHARE));
  const mayRun = (one: T) =>
    running.of(one.key) < maxPerKey && (one.askedBy === '' || runningByShare.of(shareOf(one)) < maxPerShare);
  /** What decides who is next, the smaller first. */
  const rankOf = (one: T): number[] => {
    const share = shareOf(one);
    return [running.of(one.key), runningByShare.of(share), served.get(share) ?? 0];
  };
  const remove = (one: T) => {
    const at = waiting.indexOf(one);
    if (at >= 0) waiting.splice(at, 1);
    return at >= 0;
  };
  return {
    remove,
    add: (one) => {
      const ofKey = waiting.filter(({ key }) => key === one.key);
      const full =
        ofKey.length >= MAX_WAITING_PER_KEY ? ofKey : waiting.length >= MAX_WAITING ? waiting : undefined;
      if (full !== undefined) {
        const loser = lastOfLargest(full, one);
        if (loser === undefined) return false;
        remove(loser);
        drop(loser);
      }
      waiting.push(one);
      return true;
    },
    next: () => {
      const [first, ...others] = waiting.filter(mayRun);
      if (first === undefined) return undefined;
      const best = others.reduce((found, one) => (isLess(rankOf(one), rankOf(found)) ? one : found), first);
      remove(best);
      keepLatest(served, MAX_SERVED, shareOf(best), ++turn);
      return best;
    },
    runnable: () => waiting.filter(mayRun).length,
    isIdle: () => waiting.length === 0 && running.isEmpty(),
    clear: () => waiting.splice(0),
    count: (asker, more) => {
      running.add(asker.key, more);
      runningByShare.add(shareOf(asker), more);
    },
  };
}

/** Returns the last script of whoever has the most in a full queue; undefined where that is who asks. */
function lastOfLargest<T extends Asker>(full: readonly T[], asking: T): T | undefined {
  const counts = countByKey();
  for (const one of full) counts.add(shareOf(one), 1);
  const largest = full.reduce((most, one) =>
    counts.of(shareOf(one)) > counts.of(shareOf(most)) ? one : most,
  );
  // Whoever would have as many as the largest takes no place from it.
  if (counts.of(shareOf(asking)) + 1 >= counts.of(shareOf(largest))) return undefined;
  return full.findLast((one) => shareOf(one) === shareOf(largest));
}

/** Compares numbers, the first first. */
function isLess(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at >= 0 && (a[at] ?? 0) < (b[at] ?? 0);
}
