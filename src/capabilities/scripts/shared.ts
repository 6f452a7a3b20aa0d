// Runs several scripts in one thread, so that one runs while others wait for their requests: a thread for each costs
// more than most scripts. Only scripts that used little in threads of their own come here.

import type { JobSequence } from './messages.ts';
import type { SharedOutcome } from './shared-runs.ts';
import { type SharedThread, type SharedThreadOptions, startSharedThread } from './shared-thread.ts';

interface Shared {
  /**
   * Runs a job sequence beside others.
   * @param key what the scripts belong to. No key may take more than half of the places.
   * @param onRefused called when one of the scripts must not run in a shared thread again.
   * @returns the outcomes of the jobs that ended here. `spentMs` is set when the remaining jobs are to run in a thread
   * of their own: there was no place, one of them is not allowed here, or another run ended the thread. What they have
   * done so far had no effect outside.
   */
  run(key: string, sequence: JobSequence, onRefused: () => void): Promise<SharedOutcome>;
  close(): Promise<void>;
}

/** How many sequences wait for a place, and how long, milliseconds. */
const MAX_WAITING = 200;
const TIMEOUT_WAITING_MS = 250;

/** Nothing has run: all jobs are to run in a thread of their own. */
export const ELSEWHERE: SharedOutcome = { outcomes: [], spentMs: 0 };

/** Makes a shared thread's queue. No thread is started before the first sequence, which runs elsewhere. */
export function createShared(options: Omit<SharedThreadOptions, 'onFree' | 'onEnd'>): Shared {
  const waiting = new Set<{ key: string; take(thread: SharedThread | undefined): void }>();
  let isClosed = false;
  let thread: SharedThread | undefined;
  let starting: Promise<void> | undefined;

  const onFree = () => {
    // Most waiting sequences have the same key: once one of them finds no place, the others need not be tried.
    let full: string | undefined;
    for (const one of waiting) {
      if (one.key === full) continue;
      if (thread?.hasPlace(one.key)) one.take(thread);
      else full = one.key;
    }
  };
  const onEnd = () => {
    thread = undefined;
    for (const one of waiting) one.take(undefined);
  };
  const start = async () => {
    const started = await startSharedThread({ ...options, onFree, onEnd }).catch(() => undefined);
    if (isClosed) await started?.leave();
    else thread = started;
    starting = undefined;
  };
  return {
    run: async (key, sequence, onRefused) => {
      if (isClosed) return ELSEWHERE;
      if (thread === undefined) {
        starting ??= start();
        return ELSEWHERE;
      }
      if (thread.hasPlace(key)) return thread.run(key, sequence, onRefused);
      if (waiting.size >= MAX_WAITING) return ELSEWHERE;
      return new Promise((resolve) => {
        const one = {
          key,
          take: (found: SharedThread | undefined) => {
            clearTimeout(timer);
            waiting.delete(one);
            resolve(found?.run(key, sequence, onRefused) ?? ELSEWHERE);
          },
        };
        const timer = setTimeout(() => one.take(undefined), TIMEOUT_WAITING_MS);
        waiting.add(one);
      });
    },
    close: async () => {
      isClosed = true;
      await starting;
      await thread?.leave();
    },
  };
}
