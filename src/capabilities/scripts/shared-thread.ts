// The thread that several scripts share, seen from this process. Each run has a sandbox, a time limit and a processor
// account of its own. A run that exceeds what is allowed here ends, and its script runs again in a thread of its own,
// where the full limits hold. To make that unnoticeable, scripts may only make safe requests here (RFC 9110 §9.2.1).

import type { Worker } from 'node:worker_threads';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { HAS_THREAD_CPU_USAGE, threadTime } from '../../runtime/thread-time.ts';
import { MAX_REUSED_BYTES, type ScriptLimits } from './limits.ts';
import type { LoadModule } from './module.ts';
import { createSharedRuns, type SharedRuns, type SharedRunsOptions } from './shared-runs.ts';
import { openWorker, type WorkerOptions } from './threads.ts';

export interface SharedThread extends Pick<SharedRuns, 'hasPlace'> {
  /** Runs a sequence; only after `hasPlace`. */
  run: SharedRuns['add'];
  /** Has the sequences in the thread run elsewhere. Without any, the thread is returned to the spare ones. */
  leave(): Promise<unknown>;
}

export interface SharedThreadOptions
  extends Pick<WorkerOptions, 'prepared' | 'spareThreads' | 'ending'>,
    Pick<SharedRunsOptions, 'mayAsk'> {
  outbound: Outbound;
  loadModule: LoadModule;
  /** The limits of scripts in threads of their own. */
  limits: ScriptLimits;
  /** How long the thread is kept while it is idle, milliseconds. */
  idleMs: number;
  onFree(): void;
  onEnd(): void;
}

/** Limits of a run in a shared thread: processor time, milliseconds, and memory, bytes. */
const MAX_CPU_MS = 100;
const MAX_MEMORY_BYTES = 1.5 * MAX_REUSED_BYTES;

const sharedLimits = (limits: ScriptLimits): ScriptLimits => ({
  ...limits,
  cpuMs: Math.min(limits.cpuMs, MAX_CPU_MS),
  memoryBytes: Math.min(limits.memoryBytes, MAX_MEMORY_BYTES),
});

/** Starts a shared thread and waits until it can run scripts. It keeps the process alive only while it runs some. */
export async function startSharedThread(options: SharedThreadOptions): Promise<SharedThread> {
  const { outbound, limits, mayAsk, idleMs, onEnd } = options;
  // The current run, and how often it has changed. Scripts have no access to shared memory.
  const entered = new Int32Array(new SharedArrayBuffer(8));
  const { worker, send, receive, giveAway, terminate } = await open(options, entered);
  let idle: NodeJS.Timeout | undefined;
  const rest = () => {
    watch.stop();
    worker.unref();
    clearTimeout(idle);
    idle = setTimeout(() => void leave(), idleMs).unref();
  };
  const onLeft = () => {
    if (isOver) return;
    // The dropped script may still be running, for long.
    if (sequences.isEmpty() && sequences.hasDropped()) return void end();
    if (sequences.isEmpty()) rest();
    options.onFree();
  };
  const sequences = createSharedRuns({ outbound, limits, mayAsk, send, onLeft });
  let isOver = false;
  const stop = () => {
    if (isOver) return;
    isOver = true;
    clearTimeout(idle);
    watch.stop();
    sequences.dismissAll();
    onEnd();
  };
  const end = () => {
    stop();
    return terminate();
  };
  const leave = async () => {
    const isClean = !isOver && sequences.isEmpty() && !sequences.hasDropped();
    if (isClean && giveAway()) stop();
    else await end();
  };
  const watch = watchForStalls(worker, entered, (run) => {
    sequences.refuseRun(run);
    void end();
  });
  receive((message) => {
    if (message.type !== 'ready' && !isOver) sequences.receive(message);
  });
  worker.on('exit', () => {
    // The run that was in the thread at its end may have ended it.
    sequences.refuseRun(Atomics.load(entered, 0));
    stop();
  });
  rest();
  return {
    leave,
    hasPlace: sequences.hasPlace,
    run: (key, sequence, onRefused) => {
      clearTimeout(idle);
      worker.ref();
      watch.start();
      return sequences.add(key, sequence, onRefused);
    },
  };
}

/** Opens a thread and waits until it is ready. @throws Error when it ends before. */
async function open({ loadModule, limits, ...options }: SharedThreadOptions, entered: Int32Array) {
  const wasmModule = await loadModule();
  const thread = openWorker({ ...options, wasmModule, limits: sharedLimits(limits), entered });
  await untilReady(thread);
  return thread;
}

function untilReady({ worker, receive }: ReturnType<typeof openWorker>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  receive((message) => {
    if (message.type === 'ready') resolve();
  });
  worker.on('exit', () => reject(new Error('the thread ended')));
  // The reason of an error is not needed: the exit rejects, too.
  worker.on('error', () => {});
  return promise;
}

// Watches a shared thread from this process.

/** How often a shared thread is checked, milliseconds. */
const STALL_CHECK_MS = 50;
/** Processor time that a run may use before another one must have its turn, milliseconds. */
const MAX_STALL_MS = 100;

/**
 * Watches a shared thread for a run that keeps it from the others.
 * @param entered the number of the run that uses the thread (0: none), and how often that has changed.
 * @param stalled called with the number of that run.
 */
function watchForStalls(worker: Worker, entered: Int32Array, stalled: (run: number) => void) {
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
