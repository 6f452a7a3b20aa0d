// Watches a shared thread from this process.
import type { Worker } from 'node:worker_threads';
import { HAS_THREAD_CPU_USAGE, threadTime } from '../../runtime/thread-time.ts';

/** How often a shared thread is checked, milliseconds. */
const STALL_CHECK_MS = 50;
/** Processor time that a run may use before another one must have its turn, milliseconds. */
const MAX_STALL_MS = 100;

/**
 * Watches a shared thread for a run that keeps it from the others.
 * @param entered the number of the run that uses the thread (0: none), and how often that has changed.
 * @param stalled called with the number of that run.
 */
export function watchForStalls(worker: Worker, entered: Int32Array, stalled: (run: number) => void) {
  let timer: NodeJS.Timeout | undefined;
  let before: { turn: number; at: number; used: number } | undefined;
  const check = async () => {
    const [run, turn] = [Atomics.load(entered, 0), Atomics.load(entered, 1)];
    if (run === 0 || turn !== before?.turn) {
      before = { turn, at: performance.now(), used: -1 };
      return;
    }
    const since = before;
    const used = HAS_THREAD_CPU_USAGE ? await threadTime(worker) : performance.now() - since.at;
    if (since.used < 0) since.used = used;
    const isSame = timer !== undefined && Atomics.load(entered, 1) === since.turn;
    if (isSame && used - since.used >= MAX_STALL_MS) stalled(run);
  };
  return {
    start: () => {
      timer ??= setInterval(() => void check(), STALL_CHECK_MS);
    },
    stop: () => {
      clearInterval(timer);
      timer = undefined;
    },
  };
}
