// Bounded work that requests wait for, such as password hashes. Known callers go first, and networks take turns.
import { createFairQueue, type Job } from './fair-queue.ts';
import { requester } from './requester.ts';

/** Of four pieces of work in a row, three are for known callers, if so many wait. */
const LANES = [3, 1];

export interface FairWork {
  /** Runs work in the turn of its requester. @throws the refusal when that one has too much waiting, now or later. */
  run<T>(work: () => Promise<T>): Promise<T>;
  waiting(): number;
}

/**
 * Bounds work.
 * @param maxWaiting how much may wait for known callers, and as much for others.
 * @param refusal makes the error for who gets no place.
 */
export function createFairWork({
  concurrency,
  maxWaiting,
  refusal,
}: {
  concurrency: number;
  maxWaiting: number;
  refusal(): Error;
}): FairWork {
  const queue = createFairQueue<Job>({ concurrency, maxWaiting, lanes: LANES });
  return {
    run: <T>(work: () => Promise<T>): Promise<T> => {
      const { origin, standing } = requester();
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const run = () => (async () => work())().then(resolve, reject);
      const lane = standing === 'stranger' ? 1 : 0;
      if (!queue.add({ origin, lane, run, onDisplaced: () => reject(refusal()) })) reject(refusal());
      return promise;
    },
    waiting: queue.waiting,
  };
}
