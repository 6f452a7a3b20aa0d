// The threads that scripts run in: started when they are needed, ended when they are not.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Outbound } from '../http/outbound.ts';
import type { ScriptLimits } from './limits.ts';
import { startThread, type Thread } from './thread.ts';

export interface Threads {
  /** One that is ready; it is the caller's until it is released. */
  take(): Thread | undefined;
  /** The job of a thread has ended. */
  release(thread: Thread): void;
  /** Sees to it that so many will be ready soon, as far as there may be. */
  provide(count: number): void;
  close(): Promise<void>;
}

export interface ThreadsOptions {
  outbound: Outbound;
  limits: ScriptLimits;
  /** Threads at most. */
  most: number;
  /** How long a thread is kept that nobody needs, milliseconds. */
  idleMs: number;
}

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
  const { outbound, limits, most, idleMs } = options;
  const all = new Set<Thread>();
  const ready = new Map<Thread, NodeJS.Timeout>();
  /** Those that will be ready in a moment. */
  const coming = new Set<Thread>();
  let wasmModule: Promise<WebAssembly.Module> | undefined;
  let starting = 0;
  let isClosed = false;

  const begin = (module: WebAssembly.Module) => {
    let wasReady = false;
    const onReady = () => {
      wasReady = true;
      coming.delete(thread);
      ready.set(thread, setTimeout(() => void thread.end(), idleMs).unref());
      tell('ready');
    };
    const onEnd = () => {
      clearTimeout(ready.get(thread));
      for (const set of [ready, coming, all]) set.delete(thread);
      if (!isClosed) tell(wasReady ? 'gone' : 'failed');
    };
    const thread: Thread = startThread({ wasmModule: module, limits, outbound, onReady, onEnd });
    all.add(thread);
    coming.add(thread);
  };
  const start = async () => {
    starting++;
    try {
      wasmModule ??= loadModule();
      const module = await wasmModule;
      if (!isClosed) begin(module);
    } catch {
      wasmModule = undefined;
      tell('failed');
    } finally {
      starting--;
    }
  };
  return {
    take: () => {
      const [thread, timer] = [...ready].at(-1) ?? [];
      clearTimeout(timer);
      if (thread !== undefined) ready.delete(thread);
      return thread;
    },
    release: (thread) => {
      if (!all.has(thread) || ready.has(thread)) return;
      coming.add(thread);
      // One that takes longer is busy with what it should have ended: others are not to wait for it.
      setTimeout(() => coming.delete(thread) && tell('gone'), PATIENCE).unref();
    },
    provide: (count) => {
      const short = count - ready.size - coming.size - starting;
      const wanted = Math.min(short, most - all.size - starting);
      for (let i = 0; i < wanted; i++) void start();
    },
    close: async () => {
      isClosed = true;
      await Promise.all([...all].map((thread) => thread.end()));
    },
  };
}

/** QuickJS, compiled once for all threads. */
async function loadModule(): Promise<WebAssembly.Module> {
  const file = import.meta.resolve('@jitl/quickjs-ng-wasmfile-release-sync/wasm');
  return WebAssembly.compile(await readFile(fileURLToPath(file)));
}
