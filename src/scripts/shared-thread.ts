// The thread that several scripts share, seen from this process. Each has a sandbox of its own, and its own account of time and
// processor. Whatever is out of the ordinary ends here: then they are run again by themselves, where all limits hold. So that nobody
// notices, they may only read from others (RFC 9110 §9.2.1).
import type { Outbound } from '../http/outbound.ts';
import { createGuests, type Guests, type GuestsOptions } from './guests.ts';
import { LITTLE_BYTES, type ScriptLimits } from './limits.ts';
import type { LoadModule } from './module.ts';
import { openWorker, type WorkerOptions } from './open-worker.ts';
import { watchForStalls } from './watch.ts';

export interface SharedThread extends Pick<Guests, 'hasPlace'> {
  /** Only when it has a place. */
  run: Guests['add'];
  /** Those that are in it are run elsewhere; otherwise others may have it. */
  leave(): Promise<unknown>;
}

export interface SharedThreadOptions
  extends Pick<WorkerOptions, 'prepared' | 'spareThreads'>,
    Pick<GuestsOptions, 'mayAsk'> {
  outbound: Outbound;
  loadModule: LoadModule;
  /** Of scripts that run by themselves. */
  limits: ScriptLimits;
  /** How long it is kept while nobody needs it, milliseconds. */
  idleMs: number;
  /** There is a place. */
  onFree(): void;
  onEnd(): void;
}

/** What one may use here at most: time of the processor, milliseconds, and memory, bytes. */
const MOST_CPU = 100;
const MOST_MEMORY = 1.5 * LITTLE_BYTES;

const limitsHere = (limits: ScriptLimits): ScriptLimits => ({
  ...limits,
  cpuMs: Math.min(limits.cpuMs, MOST_CPU),
  memoryBytes: Math.min(limits.memoryBytes, MOST_MEMORY),
});

/** Starts one, and waits until it can run scripts. It does not keep the process alive, except while it runs some. */
export async function startSharedThread(options: SharedThreadOptions): Promise<SharedThread> {
  const { outbound, limits, mayAsk, idleMs, onEnd } = options;
  // Its run of the moment, and how often that changed; scripts have no shared memory.
  const entered = new Int32Array(new SharedArrayBuffer(8));
  const { worker, say, hear, giveAway } = await open(options, entered);
  let idle: NodeJS.Timeout | undefined;
  const rest = () => {
    watch.stop();
    worker.unref();
    clearTimeout(idle);
    idle = setTimeout(() => void leave(), idleMs).unref();
  };
  const onLeft = () => {
    if (isOver) return;
    // One that was sent away may be in it for long.
    if (guests.isEmpty() && guests.hasDropped()) return void end();
    if (guests.isEmpty()) rest();
    options.onFree();
  };
  const guests = createGuests({ outbound, limits, mayAsk, say, onLeft });
  let isOver = false;
  const stop = () => {
    if (isOver) return;
    isOver = true;
    clearTimeout(idle);
    watch.stop();
    guests.leaveAll();
    onEnd();
  };
  const end = () => {
    stop();
    return worker.terminate();
  };
  const leave = async () => {
    const isClean = !isOver && guests.isEmpty() && !guests.hasDropped();
    if (isClean && giveAway()) stop();
    else await end();
  };
  const watch = watchForStalls(worker, entered, (run) => {
    guests.accuse(run);
    void end();
  });
  hear((message) => {
    if (message.type !== 'ready' && !isOver) guests.hear(message);
  });
  worker.on('exit', () => {
    // What was in it then may have ended it.
    guests.accuse(Atomics.load(entered, 0));
    stop();
  });
  rest();
  return {
    leave,
    hasPlace: guests.hasPlace,
    run: (key, trip, tell) => {
      clearTimeout(idle);
      worker.ref();
      watch.start();
      return guests.add(key, trip, tell);
    },
  };
}

/** @throws Error for one that ends before it is ready. */
async function open({ loadModule, limits, ...options }: SharedThreadOptions, entered: Int32Array) {
  const wasmModule = await loadModule();
  const opened = openWorker({ ...options, wasmModule, limits: limitsHere(limits), entered });
  await isReady(opened);
  return opened;
}

function isReady({ worker, hear }: ReturnType<typeof openWorker>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  hear((message) => {
    if (message.type === 'ready') resolve();
  });
  worker.on('exit', () => reject(new Error('the thread ended')));
  // What it failed of is the exit's reason, too.
  worker.on('error', () => {});
  return promise;
}
