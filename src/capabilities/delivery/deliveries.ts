// Deliveries: what the server sends and must not lose. A delivery is stored in the same write as its cause, tried by
// the process that wrote it, and removed when its receiver has accepted it. Another process takes over what a process
// leaves behind, however it ended. After a crash a receiver may get a delivery twice, with the same id.
// docs/understand/decisions/passwordless-messages.md#a-message-is-stored-until-it-is-sent
import type { Logger } from 'pino';
import type { Frozen } from '../../records/base/record.ts';
import type { CollectionName } from '../../records/collections.ts';
import type { DeliveryRecord } from '../../records/state/deliveries.ts';
import type { Clock } from '../../runtime/clock.ts';
import { deadlineIn, doneBy } from '../../runtime/deadline.ts';
import { createFairQueue, type Job as FairJob, type FairQueue } from '../../runtime/fair-queue.ts';
import { type Requester, requester } from '../../runtime/requester.ts';
import type { Random } from '../../runtime/secrets.ts';
import { createShares, type Shares } from '../../runtime/shares.ts';
import { type Filter, type Store, updateWithResult, type Write } from '../../store/contract.ts';

// A queue of jobs with bounded concurrency and length, and retries with growing pauses. The networks that caused the jobs
// take turns, and where there is no room whoever caused most gives way.

/** A job, which is retried while its failures are temporary. */
interface Job {
  run(): Promise<void>;
  /** Reports whether a failure is temporary. @param tries how many tries there were. */
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
  /** Returns how many more jobs fit. */
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

const COLLECTION = 'deliveries' satisfies CollectionName;

/** A delivery that this process has claimed. */
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
  /**
   * Extends the lease for another try.
   * @returns when it ends; undefined when another process has claimed the delivery meanwhile.
   */
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

/** Makes the claims of one process. @param batchSize how many `due` returns at most. */
function createClaims(
  { store, clock, random }: { store: Store; clock: Clock; random: Random },
  batchSize: number,
): Claims {
  const records = store.collection(COLLECTION);
  const holder = random(16).toString('base64url');
  /** Changes a delivery that this process has claimed. @returns the new record; undefined when the claim was lost. */
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

/** A delivery that is not stored yet. */
export interface PreparedDelivery {
  write: Write;
  /** Tries the delivery; called after the write. */
  start(watch?: DeliveryWatcher): void;
}

export interface Deliveries {
  /** @returns a function that makes deliveries of it. */
  add<C>(kind: DeliveryKind<C>): (content: C) => PreparedDelivery;
  /** Begins to take over what other processes have left, now and regularly. */
  start(): void;
  /** Tries every waiting delivery once more, within `ms` milliseconds; the rest stays in the store. */
  flush(ms: number): Promise<void>;
}

interface DeliveriesDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  pause?: Pause | undefined;
  /** Aborted when the server begins to stop. */
  ending: AbortSignal;
}

/** How often deliveries of other processes are looked for, milliseconds. */
const POLL_INTERVAL = 1_000;

/** How many are claimed at a time. */
const BATCH_SIZE = 200;

export function createDeliveries(deps: DeliveriesDependencies): Deliveries {
  const { store, log, ending } = deps;
  // All processes must agree when a delivery is due.
  const clock = store.sharedClock ?? deps.clock;
  const kinds = new Map<string, QueuedKind>();
  /** The deliveries that this process works on. */
  const held = new Set<string>();
  const claims = createClaims({ ...deps, clock }, BATCH_SIZE);
  const work = { claims, held, clock, log };
  let polling: Promise<void> | undefined;
  let isFirst = true;
  const takeOver = async (): Promise<void> => {
    const open = [...kinds.values()]
      .filter(({ queue }) => queue.room() >= BATCH_SIZE)
      .map(({ kind }) => kind);
    if (open.length === 0) return;
    const found = await claims.due(open, isFirst);
    isFirst = found.length === BATCH_SIZE && isFirst;
    for (const record of found) {
      const kind = kinds.get(record.kind);
      if (kind === undefined || held.has(record.id) || ending.aborted) continue;
      const claim = await claims.take(record, kind.maxDuration);
      if (claim !== undefined) startTries(work, kind, claim);
    }
  };
  const poll = () => {
    polling ??= takeOver()
      .catch((error: unknown) => log.error({ err: error }, 'what waits to be sent could not be read'))
      .finally(() => {
        polling = undefined;
      });
  };
  return {
    add: (kind) => {
      const { pauses, concurrency, capacity } = kind;
      const queue = createQueue({ pauses, concurrency, capacity, ...(deps.pause && { pause: deps.pause }) });
      const queuedKind: QueuedKind = { ...(kind as DeliveryKind<unknown>), queue };
      kinds.set(kind.kind, queuedKind);
      return (content) => {
        const { claim, write } = claims.create(kind.kind, JSON.stringify(content), kind.maxDuration);
        return { write, start: (watch) => startTries(work, queuedKind, claim, watch) };
      };
    },
    start: () => {
      const timer = setInterval(poll, POLL_INTERVAL).unref();
      ending.addEventListener('abort', () => clearInterval(timer));
      poll();
    },
    flush: async (ms) => {
      const deadline = deadlineIn(ms);
      await doneBy(deadline, Promise.resolve(polling));
      // Deliveries that these cause, such as the mail of a request, are tried as well.
      do {
        await Promise.all([...kinds.values()].map(({ queue }) => queue.flush(deadline.left())));
      } while (
        deadline.left() > 0 &&
        [...kinds.values()].some(({ queue, capacity }) => queue.room() < capacity)
      );
      if (held.size > 0) log.warn({ left: held.size }, 'what was not sent waits in the store');
    },
  };
}

// The tries of a delivery by this process.

interface Work {
  claims: Claims;
  held: Set<string>;
  clock: Clock;
  log: Logger;
}

/** How far this process has come with a delivery. */
interface Progress {
  isSent: boolean;
  /** Whether the last failure was one of the store. */
  isStoreFault: boolean;
}

/** Works on a claimed delivery until it is done, given up, or claimed by another process. */
function startTries(work: Work, kind: QueuedKind, claim: Claim, watch?: DeliveryWatcher): void {
  const { claims, held, log } = work;
  const { id } = claim;
  const content: unknown = JSON.parse(claim.content);
  const progress: Progress = { isSent: false, isStoreFault: false };
  held.add(id);
  const ended = (error?: unknown) => watch?.onEnd(error);
  const forget = () => void held.delete(id);
  const attempt = () => kind.attempt(content, { id, done: { collection: COLLECTION, delete: id } });
  const giveUp = async (error: unknown) => {
    try {
      if (!progress.isSent) await kind.onGiveUp(content, error);
      ended(error);
      await claims.remove(id);
    } catch (fault) {
      // The delivery stays in the store; the process that tries it next gives it up.
      log.error({ err: fault }, 'what could not be sent could not be given up');
      ended(error);
    }
    forget();
  };
  const release = (ms: number, failed: number) =>
    claims
      .release(id, ms, failed)
      .catch((error: unknown) =>
        log.error({ err: error }, 'what waits to be sent could not be left to others'),
      );
  const postpone = async () => {
    await release(0, 0);
    forget();
    ended();
  };
  const isAwaited = () => watch?.isAwaited() === true;
  const isQueued = kind.queue.add({
    run: attemptOf(work, { claim, maxDuration: kind.maxDuration, progress, attempt, ended, forget }),
    isTemporary: (error, tries) =>
      (progress.isStoreFault || kind.isTemporary(error)) && !(isAwaited() && tries >= (watch?.maxTries ?? 0)),
    onGiveUp: giveUp,
    onPause: (ms) => release(ms, 1),
    onPostpone: postpone,
    urgent: isAwaited(),
    from: claim.from,
    pauses: watch?.pauses ?? kind.pauses.slice(claim.tries),
  });
  if (!isQueued) void overflow(work, giveUp, postpone);
}

function attemptOf(
  { claims, clock }: Work,
  delivery: {
    claim: Claim;
    maxDuration: number;
    progress: Progress;
    attempt(): Promise<void>;
    ended(): void;
    forget(): void;
  },
): () => Promise<void> {
  const { claim, maxDuration, progress, attempt, ended, forget } = delivery;
  let until: number | undefined = claim.until;
  return async () => {
    progress.isStoreFault = true;
    if (!progress.isSent) {
      // A whole try must fit into the lease, so that no other process begins one meanwhile.
      if (until === undefined || until - clock() < maxDuration)
        until = await claims.renew(claim.id, maxDuration);
      if (until === undefined) {
        forget();
        return ended();
      }
      // In the pause after a failure any process may claim the delivery.
      until = undefined;
      progress.isStoreFault = false;
      await attempt();
      progress.isStoreFault = true;
      progress.isSent = true;
      ended();
    }
    await claims.remove(claim.id);
    forget();
  };
}

/** Handles a delivery for which this process has no room: it waits in the store, if there is room. */
async function overflow(
  { claims, log }: Work,
  giveUp: (error: unknown) => Promise<void>,
  postpone: () => Promise<void>,
): Promise<void> {
  const count = await claims.count().catch((error: unknown) => {
    log.error({ err: error }, 'what waits to be sent could not be counted');
    return 0;
  });
  await (count > MAX_STORED ? giveUp(new TooManyDeliveries()) : postpone());
}

// A kind of delivery: how it is attempted, for how long it is retried, and what happens when it is given up.

/** A kind of delivery. @template C its content: JSON, which the store seals. */
export interface DeliveryKind<C> {
  kind: string;
  /**
   * Tries a delivery once.
   * @param delivery `id`: the same at each try; `done`: the write that removes it, for an attempt that stores something
   * else with it.
   */
  attempt(content: C, delivery: { id: string; done: Write }): Promise<void>;
  isTemporary(error: unknown): boolean;
  /** Called when a delivery is given up, with the last failure. */
  onGiveUp(content: C, error: unknown): Promise<void>;
  /** Pauses between tries, milliseconds. */
  pauses: readonly number[];
  /** The longest duration of a try, milliseconds. */
  maxDuration: number;
  /** How many tries run at once. */
  concurrency: number;
  /** How many deliveries this process holds; more wait in the store. */
  capacity: number;
}

/** A caller who waits for the outcome. */
export interface DeliveryWatcher {
  isAwaited(): boolean;
  /** After so many failed tries a delivery is given up while the caller waits. */
  maxTries: number;
  /** Pauses between these tries, milliseconds. */
  pauses: readonly number[];
  /**
   * Called without an error when the delivery was accepted or left to other processes; with the reason when it was
   * given up.
   */
  onEnd(error?: unknown): void;
}

export interface QueuedKind extends DeliveryKind<unknown> {
  queue: Queue;
}

/** How many deliveries may wait in the store in all. Strangers can cause messages while a mail server is down. */
const MAX_STORED = 100_000;

/** A delivery that cannot be stored, because too many wait. */
export class TooManyDeliveries extends Error {
  constructor() {
    super('too many messages wait to be sent');
    this.name = 'TooManyDeliveries';
  }
}
