// The threads that scripts run in: started when they are needed, ended when they are not. One runs one script at a time.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Outbound } from '../http/outbound.ts';
import type { ScriptLimits } from './limits.ts';
import { type Job, type JobOutcome, startThread, type Thread } from './thread.ts';

export interface Pool {
  /**
   * Runs a job when there is a thread for it.
   * @param key whose it is: nobody's may take all threads.
   * @returns undefined when there was none in time.
   */
  run(key: string, job: Job): Promise<JobOutcome | undefined>;
  close(): Promise<void>;
}

interface PoolOptions {
  outbound: Outbound;
  limits: ScriptLimits;
  /** Threads at most. */
  most: number;
  /** How long a thread is kept that nobody needs, milliseconds. */
  idleMs: number;
  /** How long a job waits for a thread, milliseconds. */
  waitMs: number;
}

/** How long a thread may need for its next sandbox, milliseconds. */
const PATIENCE = 250;
/** Jobs that wait at most: further ones are turned away at once. */
const MOST_WAITING = 200;

interface Waiting {
  key: string;
  take(thread: Thread | undefined): void;
}

/** The pool; nothing is loaded until the first job. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: its threads and waiting jobs are one state
export function createPool({ outbound, limits, most, idleMs, waitMs }: PoolOptions): Pool {
  const all = new Set<Thread>();
  const ready = new Map<Thread, NodeJS.Timeout>();
  /** Those that have ended a job and will be ready in a moment. */
  const preparing = new Set<Thread>();
  const running = new Map<string, number>();
  const waiting: Waiting[] = [];
  let wasmModule: Promise<WebAssembly.Module> | undefined;
  let starting = 0;
  let isClosed = false;
  const mostOfOne = Math.max(1, Math.ceil(most / 2));

  const mayRun = ({ key }: { key: string }) => (running.get(key) ?? 0) < mostOfOne;
  /** Where no thread can be started: another try for those who wait would end as this one. */
  const turnAway = () => {
    for (const one of waiting.splice(0)) one.take(undefined);
  };
  /** Gives ready threads to those who wait, and starts more where that is not enough. */
  const serve = () => {
    for (const [thread, timer] of [...ready].reverse()) {
      const next = waiting.findIndex(mayRun);
      if (next < 0) break;
      clearTimeout(timer);
      ready.delete(thread);
      const [taker] = waiting.splice(next, 1);
      taker?.take(thread);
    }
    if (waiting.length === 0 && running.size === 0) return;
    // One more than is needed: it takes a while to start one, and what runs may never let go of its thread.
    const short = waiting.filter(mayRun).length + 1 - ready.size - starting - preparing.size;
    const wanted = Math.min(short, most - all.size - starting);
    for (let i = 0; i < wanted; i++) start().catch(turnAway);
  };
  const start = async () => {
    starting++;
    try {
      wasmModule ??= loadModule();
      const options = { wasmModule: await wasmModule, limits, outbound };
      if (isClosed) return;
      let wasReady = false;
      const thread: Thread = startThread({
        ...options,
        onReady: () => {
          wasReady = true;
          preparing.delete(thread);
          ready.set(thread, setTimeout(() => void thread.end(), idleMs).unref());
          serve();
        },
        onEnd: () => {
          clearTimeout(ready.get(thread));
          for (const set of [ready, preparing, all]) set.delete(thread);
          if (!wasReady) turnAway();
          else if (!isClosed) serve();
        },
      });
      all.add(thread);
      preparing.add(thread);
    } finally {
      starting--;
    }
  };
  const acquire = (key: string): Promise<Thread | undefined> => {
    if (isClosed || waiting.length >= MOST_WAITING) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const one: Waiting = {
        key,
        take: (thread) => {
          clearTimeout(timer);
          if (thread !== undefined) running.set(key, (running.get(key) ?? 0) + 1);
          resolve(thread);
        },
      };
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(one), 1);
        one.take(undefined);
      }, waitMs);
      waiting.push(one);
      serve();
    });
  };
  const isPreparing = (thread: Thread) => {
    if (!all.has(thread)) return;
    preparing.add(thread);
    // One that takes longer is busy with what it should have ended: others are not to wait for it.
    setTimeout(() => {
      if (preparing.delete(thread)) serve();
    }, PATIENCE).unref();
  };
  return {
    run: async (key, job) => {
      const thread = await acquire(key);
      if (thread === undefined) return undefined;
      try {
        return await thread.run(job);
      } finally {
        const left = (running.get(key) ?? 1) - 1;
        if (left > 0) running.set(key, left);
        else running.delete(key);
        isPreparing(thread);
      }
    },
    close: async () => {
      isClosed = true;
      for (const one of waiting.splice(0)) one.take(undefined);
      await Promise.all([...all].map((thread) => thread.end()));
    },
  };
}

/** QuickJS, compiled once for all threads. */
async function loadModule(): Promise<WebAssembly.Module> {
  const file = import.meta.resolve('@jitl/quickjs-ng-wasmfile-release-sync/wasm');
  return WebAssembly.compile(await readFile(fileURLToPath(file)));
}
