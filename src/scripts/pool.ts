// Whose script runs next: one script in a thread at a time, and nobody's scripts in all of them.
import { type Counts, countByKey } from './counts.ts';
import type { Trip } from './messages.ts';
import type { JobOutcome, Thread } from './thread.ts';
import { createThreads, type ThreadsOptions } from './threads.ts';

interface Pool {
  /**
   * Runs scripts when there is a thread for them: first of those of whom the fewest run now.
   * @param key whose they are: nobody's may take all threads, nor all places to wait for one.
   * @returns what became of them, as far as they ran; undefined when there was no thread in time.
   */
  run(key: string, trip: Trip): Promise<JobOutcome[] | undefined>;
  close(): Promise<void>;
}

interface PoolOptions extends ThreadsOptions {
  /** How long a job waits for a thread, milliseconds. */
  waitMs: number;
}

/** Trips that wait at most: further ones are turned away at once. */
const MOST_WAITING = 500;
/** Of one key: strangers at the login page of a slow connection would turn away the scripts of all others. */
const MOST_WAITING_OF_ONE = 250;
/** When it is looked whether those that run are slow, milliseconds. */
const LOOK = 50;

interface Waiting {
  key: string;
  take(thread: Thread | undefined): void;
}

/** The pool; nothing is loaded until the first job. */
export function createPool({ waitMs, ...options }: PoolOptions): Pool {
  const running = countByKey();
  const waiting: Waiting[] = [];
  const mostOfOne = Math.max(1, Math.ceil(options.most / 2));
  let isClosed = false;

  const mayRun = ({ key }: { key: string }) => running.of(key) < mostOfOne;
  /** Another try for those who wait would end as the one that has failed. */
  const turnAway = () => {
    for (const one of waiting.splice(0)) one.take(undefined);
  };
  /** Gives ready threads to those who wait, and has more started where that is not enough. */
  const serve = () => {
    for (
      let next = nextOf(waiting, running, mostOfOne);
      next >= 0;
      next = nextOf(waiting, running, mostOfOne)
    ) {
      const thread = threads.take();
      if (thread === undefined) break;
      waiting.splice(next, 1)[0]?.take(thread);
    }
    if (waiting.length === 0 && running.isEmpty()) return;
    const short = waiting.filter(mayRun).length;
    threads.provide(short);
    if (short > 0) lookAgain();
  };
  const lookAgain = oneTimer(() => isClosed || serve(), LOOK);
  const threads = createThreads(options, (what) => (what === 'failed' ? turnAway() : serve()));
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
    run: async (key, trip) => {
      const thread = await acquire(key);
      if (thread === undefined) return undefined;
      try {
        return await thread.run(trip);
      } finally {
        running.add(key, -1);
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

/** Whether one more may not wait. */
function isFull(waiting: readonly Waiting[], key: string): boolean {
  if (waiting.length < MOST_WAITING_OF_ONE) return false;
  const ofOne = waiting.filter((one) => one.key === key).length;
  return waiting.length >= MOST_WAITING || ofOne >= MOST_WAITING_OF_ONE;
}

/**
 * The one that is next: the first of those of whom the fewest run.
 * @returns its index; -1 where each has as many running as it may.
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

/** What starts a timer, unless it runs. */
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
