// Messages on their way: so many at once, tried again with growing pauses, and no more of them than memory is
// meant for.
import { AsyncResource } from 'node:async_hooks';
import PQueue from 'p-queue';

/** One thing to be done, and again when it fails in a way that may pass. */
export interface Job {
  run(): Promise<void>;
  /** Whether another try may help. @param tries how many there were. */
  mayPass(error: unknown, tries: number): boolean;
  /** Called once, when it is given up. */
  gaveUp(error: unknown): Promise<void>;
  /** Pauses of its own between tries, milliseconds; the queue's otherwise. */
  pauses?: readonly number[];
  /** Whether somebody waits for it: its tries come before those of jobs that nobody waits for. */
  urgent?: boolean;
}

export interface Queue {
  /** Takes a job. @returns false when the queue is full; the job was then not taken. */
  add(job: Job): boolean;
  /**
   * Ends what waits: pauses are cut short, each job gets one more try. Resolves when all is done or after `ms`
   * milliseconds. @returns how many jobs are left undone.
   */
  flush(ms: number): Promise<number>;
}

/** Resolves after `ms` milliseconds, or at once when the signal is aborted. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

export interface QueueOptions {
  /** Pauses between tries, milliseconds; their number is that of further tries. */
  pauses: readonly number[];
  /** Jobs that run at once; those that pause do not count. */
  concurrency: number;
  /** Jobs at most, waiting, running and pausing. */
  capacity: number;
  pause?: Pause;
}

/** Waits by the machine's timer. */
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

/** A queue in memory: what it holds is lost with the process, so it is flushed before that ends. */
export function createQueue({ pauses, concurrency, capacity, pause = timerPause }: QueueOptions): Queue {
  const open = new Set<Promise<void>>();
  const ending = new AbortController();
  const turns = new PQueue({ concurrency });

  const attempt = async (job: Job): Promise<unknown> => {
    try {
      // In the context of whoever added it: the library would run it in that of the job which ended before it.
      await turns.add(
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
      if (error === undefined || !job.mayPass(error, tries)) break;
      const late = ending.signal.aborted;
      await pause(ms, ending.signal);
      if (late) break;
      error = await attempt(job);
      tries++;
    }
    if (error !== undefined) await job.gaveUp(error);
  };

  return {
    add: (job) => {
      if (open.size >= capacity) return false;
      const ended = work(job).finally(() => open.delete(ended));
      open.add(ended);
      return true;
    },
    flush: async (ms) => {
      ending.abort();
      const giveUp = new AbortController();
      await Promise.race([Promise.allSettled(open), timerPause(ms, giveUp.signal)]);
      giveUp.abort();
      return open.size;
    },
  };
}
