// What scripts run in: a thread that is started, or one that others have had.
import { Worker } from 'node:worker_threads';
import { threadEnvironment } from '../runtime/compile-cache.js';
import { putSpare, type SpareThreads } from '../runtime/spare-threads.ts';
import type { FromThread, ThreadData, ToThread } from './messages.ts';

export interface WorkerOptions extends ThreadData {
  /** Where it is taken from, and put when nobody here needs it; otherwise it is started, and ended. */
  spareThreads?: SpareThreads | undefined;
}

/** The thread's own memory, beside that of the sandbox. */
const RESOURCES = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2, stackSizeMb: 4 };

/** Starts one, unless there is a spare one. It says when it is ready. */
export function openWorker({ wasmModule, limits, prepared, entered, spareThreads }: WorkerOptions) {
  const work = `script ${JSON.stringify([limits, prepared])}`;
  const spare = spareThreads?.take(work);
  const worker = spare ?? newWorker({ wasmModule, limits, prepared, entered });
  let outbox: ToThread[] = [];
  const flush = () => {
    const messages = outbox;
    outbox = [];
    worker.postMessage(messages);
  };
  // What is said in one turn of the event loop goes together: to wake a thread costs as much as a run.
  const say = (message: ToThread) => {
    if (outbox.push(message) === 1) setImmediate(flush);
  };
  // That it is ready a new one says by itself.
  if (spare !== undefined) say({ type: 'take', entered });
  return {
    worker,
    say,
    /** What it says, each by itself. */
    hear: (listener: (message: FromThread) => void) => {
      worker.on('message', (messages: readonly FromThread[]) => {
        for (const message of messages) listener(message);
      });
    },
    /** @returns false when nobody wants it. */
    giveAway: (): boolean => {
      if (spareThreads !== undefined) putSpare(spareThreads, work, worker);
      return spareThreads !== undefined;
    },
  };
}

function newWorker(workerData: ThreadData): Worker {
  // The published package holds JavaScript; the repository runs the TypeScript as it is.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./worker.${extension}`, import.meta.url), {
    workerData,
    name: 'script',
    resourceLimits: RESOURCES,
    env: threadEnvironment(),
    execArgv: [],
  });
}
