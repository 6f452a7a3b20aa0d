// A queue of jobs in which networks take turns, and those who have logged in before go first.
import { AsyncResource } from 'node:async_hooks';
import { requester } from './requester.ts';
import { createShares, type Origin, type Shares } from './shares.ts';

export interface Job {
  origin: Origin;
  lane: number;
  /** Runs in the async context in which it was added. Must not throw. */
  run(): Promise<void>;
  /** Called instead when it has to give way to another job. */
  onDisplaced?(): void;
}

export interface FairQueue<J extends Job> {
  /**
   * In a full lane, the newest job of whoever has most waiting there gives way.
   * @returns false when that is this job.
   */
  add(job: J): boolean;
  /** Removes a job that has not begun. @returns whether it was waiting. */
  withdraw(job: J): boolean;
  waiting(): number;
}

/**
 * @param lanes for each lane how many jobs it starts in a row while others wait; the first one goes first.
 * @param maxWaiting how many jobs may wait in each lane.
 */
export function createFairQueue<J extends Job>({
  concurrency,
  maxWaiting = Number.POSITIVE_INFINITY,
  lanes: weights,
}: {
  concurrency: number;
  maxWaiting?: number;
  lanes: readonly number[];
}): FairQueue<J> {
  const lanes = weights.map((weight) => ({ weight, left: weight, jobs: createShares<J>() }));
  const runs = new Map<J, () => Promise<void>>();
  let running = 0;
  const next = (): J | undefined => {
    const full = lanes.filter(({ jobs }) => jobs.size() > 0);
    if (full.every(({ left }) => left === 0)) for (const lane of lanes) lane.left = lane.weight;
    const lane = full.find(({ left }) => left > 0);
    if (lane !== undefined) lane.left -= 1;
    return lane?.jobs.next();
  };
  const startNext = (): void => {
    const job = running < concurrency ? next() : undefined;
    const run = job && runs.get(job);
    if (job === undefined || run === undefined) return;
    runs.delete(job);
    running += 1;
    void run().finally(() => {
      running -= 1;
      startNext();
    });
  };
  const laneOf = ({ lane }: J): Shares<J> | undefined => lanes[lane]?.jobs;
  const withdraw = (job: J): boolean => runs.delete(job) && laneOf(job)?.delete(job) === true;
  return {
    add: (job) => {
      const lane = laneOf(job);
      if (lane === undefined) throw new Error(`there is no lane ${job.lane}`);
      lane.add(job, job.origin);
      runs.set(
        job,
        AsyncResource.bind(() => job.run()),
      );
      startNext();
      if (lane.size() <= maxWaiting) return true;
      const displaced = lane.toGiveUp('newest');
      if (displaced === undefined) return true;
      withdraw(displaced);
      if (displaced === job) return false;
      displaced.onDisplaced?.();
      return true;
    },
    withdraw,
    waiting: () => runs.size,
  };
}

// Bounded work that requests wait for, such as password hashes. Known callers go first, and networks take turns.

/** Of four pieces of work in a row, three are for known callers, if so many wait. */
const LANES = [3, 1];

export interface FairWork {
  /**
   * @param origin whose turn it is: that of its requester.
   * @throws the refusal when that one has too much waiting, now or later, or the work has waited too long.
   */
  run<T>(work: () => Promise<T>, origin?: Origin): Promise<T>;
  waiting(): number;
}

/**
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
