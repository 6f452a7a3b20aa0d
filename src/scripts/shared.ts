// Scripts that share a thread, so that one runs while others wait for what they have asked: a thread for each costs more than most
// scripts. Only those that have shown by themselves that they ask for little come here.
import type { Stay } from './guests.ts';
import type { Trip } from './messages.ts';
import { type SharedThread, type SharedThreadOptions, startSharedThread } from './shared-thread.ts';

interface Shared {
  /**
   * Runs scripts beside others.
   * @param key whose they are: nobody's may take more than half of the places.
   * @param tell is called when one of them does not belong here.
   * @returns what became of them. Those without an outcome may be to be run by themselves: there is no place here, one of
   * them does not belong here, or another one made it impossible to go on. What they did so far nobody has noticed.
   */
  run(key: string, trip: Trip, tell: () => void): Promise<Stay>;
  close(): Promise<void>;
}

/** Those that wait for a place, and for how long, milliseconds. */
const MOST_WAITING = 200;
const PATIENCE = 250;

/** Nothing has begun. */
export const ELSEWHERE: Stay = { outcomes: [], spentMs: 0 };

/** The place where they run; nothing is started before it is first asked for. */
export function createShared(options: Omit<SharedThreadOptions, 'onFree' | 'onEnd'>): Shared {
  const waiting = new Set<{ key: string; take(thread: SharedThread | undefined): void }>();
  let isClosed = false;
  let thread: SharedThread | undefined;
  let starting: Promise<void> | undefined;

  const onFree = () => {
    // Most who wait are of one key: where one of them has no place, the others need not be looked at.
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
    run: async (key, trip, tell) => {
      if (isClosed) return ELSEWHERE;
      if (thread === undefined) {
        starting ??= start();
        return ELSEWHERE;
      }
      if (thread.hasPlace(key)) return thread.run(key, trip, tell);
      if (waiting.size >= MOST_WAITING) return ELSEWHERE;
      return new Promise((resolve) => {
        const one = {
          key,
          take: (found: SharedThread | undefined) => {
            clearTimeout(timer);
            waiting.delete(one);
            resolve(found?.run(key, trip, tell) ?? ELSEWHERE);
          },
        };
        const timer = setTimeout(() => one.take(undefined), PATIENCE);
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
