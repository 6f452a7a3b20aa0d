// The threads that scripts run in: started when they are needed, ended when they are not.
import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import type { Outbound } from '../../http/outbound.ts';
import type { SpareThreads } from '../../runtime/spare-threads.ts';
import type { ScriptLimits } from './limits.ts';
import type { ThreadData } from './messages.ts';
import type { LoadModule } from './module.ts';
import { startThread, type Thread } from './thread.ts';

interface Threads {
  /**
   * Takes a ready thread for one sequence; undefined where there is none. It also returns none while as many quick runs
   * are in progress as there are processors: those threads will be ready again soon, and more would only slow all of
   * them.
   */
  take(): Thread | undefined;
  /** Starts threads, so that soon so many and one more are ready, within `most`. */
  provide(count: number): void;
  close(): Promise<void>;
}

export interface ThreadsOptions {
  outbound: Outbound;
  loadModule: LoadModule;
  spareThreads?: SpareThreads | undefined;
  /** @see WorkerOptions.ending */
  ending: Set<Worker>;
  limits: ScriptLimits;
  prepared: ThreadData['prepared'];
  /** Most threads. */
  most: number;
  /** How long an idle thread is kept, milliseconds. */
  idleMs: number;
}

/** Most threads, however much memory there is. */
export const MAX_THREADS = 16;

/**
 * Returns how many threads a process may have, given its memory in bytes: a third of it for scripts that use all the
 * memory they may. Otherwise a client that starts many logins at once could exhaust the memory of the process.
 */
export function threadsWithin(memory: number, { memoryBytes }: Pick<ScriptLimits, 'memoryBytes'>): number {
  return Math.max(2, Math.min(MAX_THREADS, Math.floor(memory / 3 / memoryBytes)));
}

/** How many threads can compute at once. */
const PROCESSORS = Math.max(2, availableParallelism());
/** A run that takes longer than this may not end soon, milliseconds: most scripts only compute something. */
const MAX_QUICK_MS = 100;
/** How long a thread may take until it is ready again, milliseconds. */
const TIMEOUT_READY_MS = 250;

/**
 * Makes the threads; nothing is loaded before the first is needed.
 * @param notify `ready`: a thread can be taken; `gone`: one has ended; `failed`: none can be started.
 */
export function createThreads(
  options: ThreadsOptions,
  notify: (what: 'ready' | 'gone' | 'failed') => void,
): Threads {
  const { idleMs } = options;
  const all = new Set<Thread>();
  const ready = new Map<Thread, NodeJS.Timeout>();
  /** Threads in use, and when they were taken. */
  const inUse = new Map<Thread, number>();
  /** Threads that will be ready soon. */
  const starting = new Set<Thread>();
  let isClosed = false;

  const quick = () =>
    [...inUse].filter(([thread, since]) => !starting.has(thread) && isQuick(thread, since)).length;
  const addThread = (wasmModule: WebAssembly.Module) => {
    if (isClosed) return;
    let wasReady = false;
    const onReady = () => {
      wasReady = true;
      starting.delete(thread);
      inUse.delete(thread);
      ready.set(thread, setTimeout(() => void thread.leave(), idleMs).unref());
      notify('ready');
    };
    const onMaking = () => {
      starting.add(thread);
      // A thread that takes longer is still busy with the run that should have ended: others must not wait for it.
      setTimeout(() => starting.delete(thread) && notify('gone'), TIMEOUT_READY_MS).unref();
    };
    const onEnd = () => {
      if (!all.has(thread)) return;
      clearTimeout(ready.get(thread));
      for (const set of [ready, inUse, starting, all]) set.delete(thread);
      if (!isClosed) notify(wasReady ? 'gone' : 'failed');
    };
    const thread: Thread = startThread({ ...options, wasmModule, onReady, onMaking, onEnd });
    for (const set of [starting, all]) set.add(thread);
  };
  const starter = createStarter(options.loadModule, addThread, () => notify('failed'));
  return {
    take: () => {
      if (quick() >= PROCESSORS) return undefined;
      const [thread, timer] = [...ready].at(-1) ?? [];
      clearTimeout(timer);
      if (thread === undefined) return undefined;
      ready.delete(thread);
      inUse.set(thread, performance.now());
      return thread;
    },
    provide: (count) => {
      const soon = ready.size + starting.size + starter.starting();
      // One more than is needed, because starting takes a while and a running script may never release its thread.
      const needed = Math.min(count, PROCESSORS) + 1;
      const missing = Math.min(needed - soon, roomFor(options, all.size) - starter.starting());
      for (let i = 0; i < missing; i++) void starter.start();
    },
    close: async () => {
      isClosed = true;
      await Promise.all([...all].map((thread) => (ready.has(thread) ? thread.leave() : thread.end())));
    },
  };
}

/** Returns how many more threads there may be. Those that were given up are replaced, but not without end. */
const roomFor = ({ most, ending }: ThreadsOptions, count: number): number =>
  Math.min(most - count, 2 * most - count - ending.size);

/** @param since when it was taken. */
const isQuick = (thread: Thread, since: number): boolean =>
  !thread.isAsking() && performance.now() - since < MAX_QUICK_MS;

/** Returns a function that starts threads, and the number of those that are being started. */
function createStarter(
  loadModule: LoadModule,
  addThread: (module: WebAssembly.Module) => void,
  failed: () => void,
) {
  let starting = 0;
  return {
    starting: () => starting,
    start: async () => {
      starting++;
      try {
        addThread(await loadModule());
      } catch {
        failed();
      } finally {
        starting--;
      }
    },
  };
}
