// Watches a thread from this process: whether it uses the processor for longer than it may.
import { Worker } from 'node:worker_threads';

/** How often is looked, milliseconds. */
const CHECK = 100;
/** Node of old versions cannot tell what a thread has used of the processor. */
const TELLS = 'threadCpuUsage' in process && 'cpuUsage' in Worker.prototype;

interface Watched {
  worker: Worker;
  /** What it had used of the processor before, milliseconds. */
  used: number;
  /** What it may use beyond that, milliseconds. */
  most: number;
  tooMuch(): void;
}

/**
 * Looks for a thread that is busy for longer than it may be: some of what a script calls asks nobody whether it is to end.
 * @returns what ends the watch.
 */
export function watchOver({ worker, used, most, tooMuch }: Watched): () => void {
  const before = worker.performance.eventLoopUtilization();
  let isEnded = false;
  const look = async () => {
    if (worker.performance.eventLoopUtilization(before).active < most) return;
    // Busy is also one that waits for a processor that others have.
    const isTooMuch = !TELLS || (await processorTime(worker)) - used >= most;
    if (isTooMuch && !isEnded) tooMuch();
  };
  const timer = setInterval(() => void look(), CHECK);
  return () => {
    isEnded = true;
    clearInterval(timer);
  };
}

/** What a thread has used of the processor, milliseconds; 0 for one that has ended meanwhile. */
const processorTime = (worker: Worker): Promise<number> =>
  worker.cpuUsage().then(
    ({ user, system }) => (user + system) / 1000,
    () => 0,
  );

/** How often a thread of several runs is looked at, milliseconds. */
const STALL_CHECK = 50;
/** What one of them may use of the processor before others have their turn, milliseconds. */
const STALL = 100;

/**
 * Looks for a run that keeps a thread from others.
 * @param entered the number of the run that is in it (0: none), and how often that has changed.
 * @param stalled is called with the run's number.
 */
export function watchForStalls(worker: Worker, entered: Int32Array, stalled: (run: number) => void) {
  let timer: NodeJS.Timeout | undefined;
  let before: { turn: number; at: number; used: number } | undefined;
  const look = async () => {
    const [run, turn] = [Atomics.load(entered, 0), Atomics.load(entered, 1)];
    if (run === 0 || turn !== before?.turn) {
      before = { turn, at: performance.now(), used: -1 };
      return;
    }
    const since = before;
    const used = TELLS ? await processorTime(worker) : performance.now() - since.at;
    if (since.used < 0) since.used = used;
    const isSame = timer !== undefined && Atomics.load(entered, 1) === since.turn;
    if (isSame && used - since.used >= STALL) stalled(run);
  };
  return {
    start: () => {
      timer ??= setInterval(() => void look(), STALL_CHECK);
    },
    stop: () => {
      clearInterval(timer);
      timer = undefined;
    },
  };
}
