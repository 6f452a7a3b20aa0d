// A queue of jobs with bounded concurrency and length, and retries with growing pauses.
import { AsyncResource } from 'node:async_hooks';
import PQueue from 'p-queue';

/** A job, which is retried while its failures are temporary. */
interface Job {
  run(): Promise<void>;
  /** Reports whether a failure is temporary. @param tries how many tries there were. */
  isTemporary(error: unknown, tries: number): boolean;
  /** Called once when the job is given up. */
  onGiveUp(error: unknown): Promise<void>;
  /** Called before a pause of so many milliseconds. */
  onPause?(ms: number): Promise<void>;
  /** Called instead of `onGiveUp` when a flush has cut the tries short and another process may continue. */
  onPostpone?(): Promise<void>;
  /** Pauses between tries, milliseconds; default: the queue's. */
  pauses?: readonly number[];
  /** Whether a caller waits for it: urgent jobs go first. */
  urgent?: boolean;
}

export interface Queue {
  /** Returns how many more jobs fit. */
  room(): number;
  /** Adds a job. @returns false when the queue is full and the job was not added. */
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

/** Pauses by a timer. */
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

/** Makes a queue in memory; flush it before the process ends. */
export function createQueue({ pauses, concurrency, capacity, pause = timerPause }: QueueOptions): Queue {
  const open = new Set<Promise<void>>();
  const flushing = new AbortController();
  const pool = new PQueue({ concurrency });

  const attempt = async (job: Job): Promise<unknown> => {
    try {
      // Keeps the async context of the caller; p-queue would run the job in that of the job before it.
      await pool.add(
        AsyncResource.bind(() => job.run()),
        { priority: job.urgent === true ? 1 : 0 },
      );
      return undefined;
    } catch (error) {
      return error ?? new Error('the job failed without a reason');
    }
  };

  const work = async (job: Job): Promise<void> => {
    let error = await attempt(job);
    let tries = 1;
    for (const ms of job.pauses ?? pauses) {
      if (error === undefined || !job.isTemporary(error, tries)) break;
      const isFlushing = flushing.signal.aborted;
      await job.onPause?.(ms);
      if (isFlushing && job.onPostpone !== undefined) return job.onPostpone();
      await pause(ms, flushing.signal);
      if (isFlushing) break;
      error = await attempt(job);
      tries++;
    }
    if (error !== undefined) await job.onGiveUp(error);
  };

  return {
    room: () => Math.max(0, capacity - open.size),
    add: (job) => {
      if (open.size >= capacity) return false;
      const ended = work(job).finally(() => open.delete(ended));
      open.add(ended);
      return true;
    },
    flush: async (ms) => {
      flushing.abort();
      const giveUp = new AbortController();
      await Promise.race([Promise.allSettled(open), timerPause(ms, giveUp.signal)]);
      giveUp.abort();
      return open.size;
    },
  };
}
