// Opens the threads that scripts run in: new ones, or spare ones that another owner has used.
import type { Worker } from 'node:worker_threads';
import { putSpare, type SpareThreads } from '../../runtime/spare-threads.ts';
import { endWorker, moduleBeside, startWorker } from '../../runtime/worker-thread.ts';
import type { FromThread, ThreadData, ToThread } from './messages.ts';

export interface WorkerOptions extends ThreadData {
  /** Where the thread is taken from and returned to. Without it the thread is started and ended. */
  spareThreads?: SpareThreads | undefined;
  /** The threads that were told to end and have not ended yet. */
  ending: Set<Worker>;
}

/** The thread's own memory, in addition to that of the sandbox. */
const RESOURCES = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2, stackSizeMb: 4 };

/** Takes a spare thread, or starts one. The thread sends `ready` when it can take a run. */
export function openWorker({ wasmModule, limits, prepared, entered, spareThreads, ending }: WorkerOptions) {
  const work = `script ${JSON.stringify([limits, prepared])}`;
  const spare = spareThreads?.take(work);
  const worker = spare ?? newWorker({ wasmModule, limits, prepared, entered });
  let outbox: ToThread[] = [];
  const flush = () => {
    const messages = outbox;
    outbox = [];
    worker.postMessage(messages);
  };
  // Messages of one turn of the event loop are sent together: waking a thread costs as much as a run.
  const send = (message: ToThread) => {
    if (outbox.push(message) === 1) setImmediate(flush);
  };
  // A new thread sends `ready` by itself.
  if (spare !== undefined) send({ type: 'take', entered });
  return {
    worker,
    send,
    /** Ends the thread: {@link endWorker}. */
    terminate: (): Promise<void> => endWorker(worker, ending),
    /** Calls the listener with each message of the thread. */
    receive: (listener: (message: FromThread) => void) => {
      worker.on('message', (messages: readonly FromThread[]) => {
        for (const message of messages) listener(message);
      });
    },
    /** Returns the thread to the spare ones. @returns false where there are none. */
    giveAway: (): boolean => {
      if (spareThreads !== undefined) putSpare(spareThreads, work, worker);
      return spareThreads !== undefined;
    },
  };
}

const newWorker = (data: ThreadData): Worker =>
  startWorker({ name: 'script', module: moduleBeside(import.meta.url, 'worker'), memory: RESOURCES, data });
