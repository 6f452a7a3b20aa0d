// The threads that scripts run in: started when they are needed, ended when they are not.
import { availableParallelism } from 'node:os';
import type { Outbound } from '../http/outbound.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';
import type { ScriptLimits } from './limits.ts';
import type { ThreadData } from './messages.ts';
import type { LoadModule } from './module.ts';
import { startThread, type Thread } from './thread.ts';

interface Threads {
  /**
   * One that is ready; it is the caller's for one trip. Those of quick runs are ready again before another one has
   * begun: with more of them than processors, all would only be slower.
   */
  take(): Thread | undefined;
  /** Sees to it that there will be some for so many soon, and one more, as far as there may be. */
  provide(count: number): void;
  close(): Promise<void>;
}

export interface ThreadsOptions {
  outbound: Outbound;
  loadModule: LoadModule;
  spareThreads?: SpareThreads | undefined;
  limits: ScriptLimits;
  prepared: ThreadData['prepared'];
  /** Threads at most. */
  most: number;
  /** How long a thread is kept that nobody needs, milliseconds. */
  idleMs: number;
}

/** However much memory there is. */
export const MOST_THREADS = 16;

/**
 * How many threads there may be where there is so much memory, bytes: a third of it for scripts that need all that they may have.
 * Whoever can have many logins begun at once could otherwise have the process ended.
 */
export function threadsWithin(memory: number, { memoryBytes }: Pick<ScriptLimits, 'memoryBytes'>): number {
  return Math.max(2, Math.min(MOST_THREADS, Math.floor(memory / 3 / memoryBytes)));
}

/** Threads that compute at once. */
const PROCESSORS = Math.max(2, availableParallelism());
/** What runs for longer may not be free soon, milliseconds: most scripts compute something, and that is all. */
const SLOW = 100;
/** How long a thread may need until it is ready again, milliseconds. */
const PATIENCE = 250;

/**
 * The threads; nothing is loaded before the first is asked for.
 * @param tell `ready`: there is one to take; `gone`: one has ended; `failed`: none can be started.
 */
export function createThreads(
  options: ThreadsOptions,
  tell: (what: 'ready' | 'gone' | 'failed') => void,
): Threads {
  const { most, idleMs } = options;
  const all = new Set<Thread>();
  const ready = new Map<Thread, NodeJS.Timeout>();
  /** Those that were not ready again since, and when they were taken. */
  const taken = new Map<Thread, number>();
  /** Those that will be ready in a moment. */
  const coming = new Set<Thread>();
  let isClosed = false;

  const quick = () =>
    [...taken].filter(([thread, since]) => !coming.has(thread) && isQuick(thread, since)).length;
  const begin = (wasmModule: WebAssembly.Module) => {
    if (isClosed) return;
    let wasReady = false;
    const onReady = () => {
      wasReady = true;
      coming.delete(thread);
      taken.delete(thread);
      ready.set(thread, setTimeout(() => void thread.leave(), idleMs).unref());
      tell('ready');
    };
    const onMaking = () => {
      coming.add(thread);
      // One that takes longer is busy with what it should have ended: others are not to wait for it.
      setTimeout(() => coming.delete(thread) && tell('gone'), PATIENCE).unref();
    };
    const onEnd = () => {
      clearTimeout(ready.get(thread));
      for (const set of [ready, taken, coming, all]) set.delete(thread);
      if (!isClosed) tell(wasReady ? 'gone' : 'failed');
    };
    const thread: Thread = startThread({ ...options, wasmModule, onReady, onMaking, onEnd });
    for (const set of [coming, all]) set.add(thread);
  };
  const starter = createStarter(options.loadModule, begin, () => tell('failed'));
  return {
    take: () => {
      if (quick() >= PROCESSORS) return undefined;
      const [thread, timer] = [...ready].at(-1) ?? [];
      clearTimeout(timer);
      if (thread === undefined) return undefined;
      ready.delete(thread);
      taken.set(thread, performance.now());
      return thread;
    },
    provide: (count) => {
      const soon = ready.size + coming.size + starter.starting();
      // One more than is needed: it takes a while to start one, and what runs may never let go of its thread.
      const needed = Math.min(count, PROCESSORS) + 1;
      const wanted = Math.min(needed - soon, most - all.size - starter.starting());
      for (let i = 0; i < wanted; i++) void starter.start();
    },
    close: async () => {
      isClosed = true;
      await Promise.all([...all].map((thread) => (ready.has(thread) ? thread.leave() : thread.end())));
    },
  };
}

/** @param since when it was taken. */
const isQuick = (thread: Thread, since: number): boolean =>
  !thread.isAsking() && performance.now() - since < SLOW;

/** Starts threads. */
function createStarter(
  loadModule: LoadModule,
  begin: (module: WebAssembly.Module) => void,
  failed: () => void,
) {
  let starting = 0;
  return {
    /** How many are being started. */
    starting: () => starting,
    start: async () => {
      starting++;
      try {
        begin(await loadModule());
      } catch {
        failed();
      } finally {
        starting--;
      }
    },
  };
}
