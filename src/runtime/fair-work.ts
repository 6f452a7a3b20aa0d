// Bounded work that requests wait for, such as password hashes. Known callers go first, and networks take turns.
import { createFairQueue, type Job } from './fair-queue.ts';
import { requester } from './requester.ts';
import type { Origin } from './shares.ts';

/** Of four pieces of work in a row, three are for known callers, if so many wait. */
const LANES = [3, 1];

export interface FairWork {
  /**
   * Runs work in its turn.
   * @param origin whose turn it is: that of its requester.
   * @throws the refusal when that one has too much waiting, now or later, or the work has waited too long.
   */
  run<T>(work: () => Promise<T>, origin?: Origin): Promise<T>;
  waiting(): number;
}

/**
 * Bounds work.
 * @param maxWaiting how much may wait for known callers, and as much for others.
 * @param maxWaitMs how long work may wait, milliseconds.
 * @param refusal makes the error for who gets no place.
 */
export function createFairWork({
  concurrency,
  maxWaiting,
  maxWaitMs,
  refusal,
}: {
  concurrency: number;
  maxWaiting: number;
  maxWaitMs?: number;
  refusal(): Error;
}): FairWork {
  const queue = createFairQueue<Job>({ concurrency, maxWaiting, lanes: LANES });
  return {
    run: <T>(work: () => Promise<T>, origin = requester().origin): Promise<T> => {
      const lane = requester().standing === 'stranger' ? 1 : 0;
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const refuse = () => reject(refusal());
      let timer: NodeJS.Timeout | undefined;
      const run = () => {
        clearTimeout(timer);
        return (async () => work())().then(resolve, reject);
      };
      const onDisplaced = () => {
        clearTimeout(timer);
        refuse();
      };
      const job: Job = { origin, lane, run, onDisplaced };
      if (maxWaitMs !== undefined) timer = setTimeout(() => queue.withdraw(job) && refuse(), maxWaitMs);
      if (!queue.add(job)) onDisplaced();
      return promise;
    },
    waiting: queue.waiting,
  };
}
