// A queue of jobs with bounded concurrency and length, and retries with growing pauses. The networks that caused the jobs
// take turns, and where there is no room whoever caused most gives way.

import type { CollectionName } from '../../records/collections.ts';
import type { DeliveryRecord } from '../../records/deliveries.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import { createFairQueue, type Job as FairJob, type FairQueue } from '../../runtime/fair-queue.ts';
import { type Requester, requester } from '../../runtime/requester.ts';
import type { Random } from '../../runtime/secrets.ts';
import { createShares, type Shares } from '../../runtime/shares.ts';
import { type Filter, type Store, updateWithResult, type Write } from '../../store/contract.ts';

/** A job, which is retried while its failures are temporary. */
interface Job {
  run(): Promise<void>;
  /** @param tries how many tries there were. */
  isTemporary(error: unknown, tries: number): boolean;
  /** Called once when the job is given up. */
  onGiveUp(error: unknown): Promise<void>;
  /** Called before a pause of so many milliseconds. */
  onPause?(ms: number): Promise<void>;
  /**
   * Called instead of `onGiveUp` when another process may continue, or this one later: a flush has cut the tries short, or
   * others need the place.
   */
  onPostpone?(): Promise<void>;
  /** Who caused it. */
  from: Requester;
  /** Pauses between tries, milliseconds; default: the queue's. */
  pauses?: readonly number[];
  /** Whether a caller waits for it: urgent jobs go first. */
  urgent?: boolean;
}

export interface Queue {
  room(): number;
  /**
   * Adds a job. In a full queue, the newest job of whoever has most there is postponed.
   * @returns false when that is this job: it was not added.
   */
  add(job: Job): boolean;
  /**
   * Gives each waiting job one more try, without pauses. Resolves when all are done or after `ms` milliseconds.
   * @returns how many jobs are left.
   */
  flush(ms: number): Promise<number>;
}

/** Resolves after `ms` milliseconds, or at once when the signal is aborted. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

interface QueueOptions {
  /** Pauses between tries, milliseconds: one retry after each. */
  pauses: readonly number[];
  /** Jobs that run at once; pausing ones do not count. */
  concurrency: number;
  /** Most jobs in all: waiting, running and pausing. */
  capacity: number;
  pause?: Pause;
}

export const timerPause: Pause = (ms, signal) =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });

/**
 * Of nine jobs in a row, four are those that somebody known waits for, two those that a stranger waits for, two others
 * of known callers and of the server, and one another's; if so many of each wait.
 */
const LANES = [4, 2, 2, 1];

function laneOf({ urgent, from }: Job): number {
  return (urgent === true ? 0 : 2) + (from.standing === 'stranger' ? 1 : 0);
}

/** A job in the queue: waiting, running or pausing. */
interface Open {
  job: Job;
  /** Aborted when it has to give way. */
  displaced: AbortController;
}

/** Tries a job in its turn. Resolves with the failure; undefined when it has succeeded. */
type Attempt = (one: Open) => Promise<unknown>;

/** Makes a queue in memory; flush it before the process ends. */
export function createQueue({ pauses, concurrency, capacity, pause = timerPause }: QueueOptions): Queue {
  const open = createShares<Open>();
  const ends = new Set<Promise<void>>();
  const flushing = new AbortController();

  const attempt = attempts(open, createFairQueue({ concurrency, lanes: LANES }));
  const work = async (one: Open): Promise<void> => {
    const { job, displaced } = one;
    let error = await attempt(one);
    let tries = 1;
    for (const ms of job.pauses ?? pauses) {
      if (displaced.signal.aborted || error === undefined || !job.isTemporary(error, tries)) break;
      const isFlushing = flushing.signal.aborted;
      await job.onPause?.(ms);
      if (isFlushing && job.onPostpone !== undefined) return job.onPostpone();
      await pause(ms, AbortSignal.any([flushing.signal, displaced.signal]));
      if (isFlushing || displaced.signal.aborted) break;
      error = await attempt(one);
      tries++;
    }
    if (error === undefined) return;
    if (displaced.signal.aborted && job.onPostpone !== undefined) await job.onPostpone();
    else await job.onGiveUp(error);
  };

  return {
    room: () => Math.max(0, capacity - open.size()),
    add: (job) => {
      const one: Open = { job, displaced: new AbortController() };
      open.add(one, job.from.origin);
      if (open.size() > capacity) {
        const displaced = open.toGiveUp('newest') ?? one;
        open.delete(displaced);
        if (displaced === one) return false;
        displaced.displaced.abort();
      }
      const ended = work(one).finally(() => {
        open.delete(one);
        ends.delete(ended);
      });
      ends.add(ended);
      return true;
    },
    flush: async (ms) => {
      flushing.abort();
      const giveUp = new AbortController();
      await Promise.race([Promise.allSettled(ends), timerPause(ms, giveUp.signal)]);
      giveUp.abort();
      return ends.size;
    },
  };
}

function attempts(open: Shares<Open>, pool: FairQueue<FairJob>): Attempt {
  return (one) => {
    const { job, displaced } = one;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const run = async () => {
      // What runs gives way last: its place is only free when it has ended.
      open.keep(one);
      try {
        await job.run();
        resolve(undefined);
      } catch (error) {
        resolve(error ?? new Error('the job failed without a reason'));
      }
      open.release(one);
    };
    const waiting = { origin: job.from.origin, lane: laneOf(job), run };
    displaced.signal.addEventListener('abort', () => {
      if (pool.withdraw(waiting)) resolve(new Error('others need the place'));
    });
    pool.add(waiting);
    return promise;
  };
}

// Claims on deliveries. Each delivery is tried by at most one process at a time, which holds a lease that is longer
// than a try.

type Record = Frozen<DeliveryRecord>;

/** Added to the longest duration of a try, milliseconds: the clocks of two hosts differ, and a process may stall. */
const MARGIN = 15_000;

/**
 * No delivery is ever due later than this, milliseconds. One that seems to be was claimed by a process that has ended,
 * whose clock was ahead.
 */
const MAX_DUE_AHEAD = 3_600_000;

const dateOf = (at: number) => new Date(at).toISOString();

export const COLLECTION = 'deliveries' satisfies CollectionName;

export interface Claim {
  id: string;
  content: string;
  tries: number;
  /** When the lease ends, epoch milliseconds. */
  until: number;
  /** Who caused it. */
  from: Requester;
}

export interface Claims {
  create(kind: string, content: string, maxDuration: number): { claim: Claim; write: Write };
  /**
   * Returns deliveries of some kinds that no process is working on, those that are due longest first.
   * @param isFirst whether this process has just started.
   */
  due(kinds: readonly string[], isFirst: boolean): Promise<readonly Record[]>;
  /** Claims a delivery. @returns undefined when another process was faster. */
  take(record: Record, longest: number): Promise<Claim | undefined>;
  /** @returns when it ends; undefined when another process has claimed the delivery meanwhile. */
  renew(id: string, longest: number): Promise<number | undefined>;
  /**
   * Gives the claim up; any process may take the delivery after so many milliseconds.
   * @param failed how many tries have failed since.
   */
  release(id: string, ms: number, failed: number): Promise<void>;
  /** Removes a delivery that its receiver has accepted, or that is given up. */
  remove(id: string): Promise<void>;
  count(): Promise<number>;
}

/** @param batchSize how many `due` returns at most. */
export function createClaims(
  { store, clock, random }: { store: Store; clock: Clock; random: Random },
  batchSize: number,
): Claims {
  const records = store.collection(COLLECTION);
  const holder = random(16).toString('base64url');
  /** @returns the new record; undefined when the claim was lost. */
  const updateOwn = async (id: string, change: (current: Record) => Record): Promise<Record | undefined> => {
    const now = await records.update(id, (current) =>
      current.holder === holder ? change(current) : current,
    );
    return now?.holder === holder ? now : undefined;
  };
  return {
    create: (kind, content, maxDuration) => {
      const id = random(16).toString('hex');
      const until = clock() + maxDuration + MARGIN;
      const from = requester();
      const record = { id, kind, content, dueAt: dateOf(until), holder, tries: 0, from };
      return { claim: claimOf(record, until), write: { collection: COLLECTION, insert: record } };
    },
    due: async (kinds, isFirst) => {
      const kind = { field: 'kind', in: kinds };
      const find = async (where: Filter) =>
        (await records.list({ where, sort: { field: 'dueAt' }, limit: batchSize })).records;
      // No other process uses an exclusive store, so a process that has ended held these leases. Deliveries that this
      // process has just written are left out: it works on them already.
      if (isFirst && store.exclusive === true)
        return (await find(kind)).filter((one) => one.holder !== holder);
      const far = isFirst ? await find({ field: 'dueAt', from: dateOf(clock() + MAX_DUE_AHEAD) }) : [];
      const ours = far.filter((one) => kinds.includes(one.kind));
      return ours.length > 0 ? ours : find({ all: [{ field: 'dueAt', to: dateOf(clock()) }, kind] });
    },
    take: async ({ id, dueAt }, maxDuration) => {
      const until = clock() + maxDuration + MARGIN;
      const claimed = await updateWithResult(records, id, (current) =>
        current.dueAt === dueAt
          ? { result: current, next: { ...current, holder, dueAt: dateOf(until) } }
          : { result: undefined },
      );
      return claimed && claimOf(claimed, until);
    },
    renew: async (id, maxDuration) => {
      const until = clock() + maxDuration + MARGIN;
      return (await updateOwn(id, (current) => ({ ...current, dueAt: dateOf(until) }))) && until;
    },
    release: async (id, ms, failed) => {
      await updateOwn(id, (current) => ({
        ...current,
        dueAt: dateOf(clock() + ms),
        tries: current.tries + failed,
      }));
    },
    remove: async (id) => {
      await records.delete(id);
    },
    count: () => records.count(),
  };
}

function claimOf({ id, content, tries, from }: Record, until: number): Claim {
  return { id, content, tries, until, from };
}
