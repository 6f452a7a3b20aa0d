// Worker threads: how one is started, watched and ended. They hold what must not run on the thread that answers.
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { threadEnvironment } from './compile-cache.js';
import { deadlineIn, doneBy } from './deadline.ts';
import { HAS_THREAD_CPU_USAGE, threadTime } from './thread-time.ts';

interface ThreadStart {
  /** For tools that list threads. */
  name: string;
  module: URL;
  memory: ResourceLimits;
  data?: unknown;
}

/** Returns a module beside the one at a URL. The published package holds JavaScript; the repository runs TypeScript. */
export const moduleBeside = (url: string, name: string): URL =>
  new URL(`./${name}.${url.endsWith('.ts') ? 'ts' : 'js'}`, url);

export function startWorker({ name, module, memory, data }: ThreadStart): Worker {
  return new Worker(module, {
    name,
    workerData: data,
    resourceLimits: memory,
    env: threadEnvironment(),
    execArgv: [],
  });
}

/** How long to wait for the end of a thread, milliseconds. Nothing interrupts a function of Node.js that computes. */
const TIMEOUT_END_MS = 1_000;

/**
 * Ends a thread, whatever it does.
 * @param ending holds it until it has ended.
 * @returns when it has ended, or is given up because it did not end in time.
 */
export async function endWorker(worker: Worker, ending: Set<Worker>): Promise<void> {
  ending.add(worker);
  const ended = worker.terminate().then(() => ending.delete(worker));
  await doneBy(deadlineIn(TIMEOUT_END_MS), ended);
}

/** How often a thread is checked, milliseconds. */
const CHECK_MS = 100;

interface WatchOptions {
  worker: Worker;
  /** Processor time that it had used before, milliseconds. */
  used: number;
  /** Processor time that it may use beyond that, milliseconds. */
  most: number;
  tooMuch(): void;
}

/**
 * Watches a thread for work that uses too much processor time, which the thread itself cannot interrupt everywhere. One that
 * computes in a function of Node.js does not tell its time: only a limit of elapsed time ends it.
 * @returns a function that ends the watch.
 */
export function watchOver({ worker, used, most, tooMuch }: WatchOptions): () => void {
  const before = worker.performance.eventLoopUtilization();
  let isEnded = false;
  const check = async () => {
    if (worker.performance.eventLoopUtilization(before).active < most) return;
    // A thread that waits for a processor counts as busy, too.
    const isTooMuch = !HAS_THREAD_CPU_USAGE || (await threadTime(worker)) - used >= most;
    if (isTooMuch && !isEnded) tooMuch();
  };
  const timer = setInterval(() => void check(), CHECK_MS);
  return () => {
    isEnded = true;
    clearInterval(timer);
  };
}
