// The threads that scripts run in: started when they are needed, ended when they are not.
import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { putSpare, type SpareThreads } from '../../runtime/spare-threads.ts';
import { endWorker, moduleBeside, startWorker, watchOver } from '../../runtime/worker-thread.ts';
import type { ScriptFailure, ScriptFailureKind, ScriptLimits, ScriptLine, ScriptUsage } from './limits.ts';
import type { LoadModule } from './module.ts';
import { readRequest, scriptRequest } from './requests.ts';
import type {
  AnswerMessage,
  FromThread,
  JobSequence,
  OutcomeMessage,
  RequestMessage,
  ThreadData,
  ToThread,
} from './scripts-messages.ts';

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
  most: number;
  /** How long an idle thread is kept, milliseconds. */
  idleMs: number;
}

/** Most threads, however much memory there is. */
export const MAX_THREADS = 16;

// docs/understand/decisions/actions-scripts.md#how-many-scripts-run-at-once-depends-on-the-memory-of-the-machine-or-container
/**
 * Returns how many threads a process may have, given its memory in bytes: a third of it for scripts that use all the
 * memory they may. Otherwise a client that starts many logins at once could exhaust the memory of the process.
 */
export function threadsWithin(memory: number, { memoryBytes }: Pick<ScriptLimits, 'memoryBytes'>): number {
  return Math.max(2, Math.min(MAX_THREADS, Math.floor(memory / 3 / memoryBytes)));
}

// docs/understand/decisions/actions-scripts.md#at-most-as-many-scripts-compute-at-once-as-there-are-processors
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

// A script thread, seen from this process: starts runs, makes the requests of scripts, and terminates the thread when a
// run takes too long or blocks it.

export interface JobOutcome {
  /** The result, as JSON. */
  result?: string;
  failure?: ScriptFailure;
  used: ScriptUsage;
  printed: ScriptLine[];
}

export interface Thread {
  /** Runs a job sequence; only when the thread is ready. @returns the outcomes of the jobs that ran. */
  run(sequence: JobSequence): Promise<JobOutcome[]>;
  /** Whether the current run has made a request, and so may be waiting. */
  isAsking(): boolean;
  /** Terminates the thread, whatever it does. */
  end(): Promise<unknown>;
  /** Returns the thread to the spare ones, or ends it; only when it is ready. */
  leave(): Promise<unknown>;
}

interface ThreadOptions extends WorkerOptions {
  outbound: Outbound;
  onReady(): void;
  /** Called when its run has ended and it makes another sandbox. */
  onMaking(): void;
  /** Called when the thread has ended, or is given up because it did not end in time; perhaps for both. */
  onEnd(): void;
}

export interface CurrentRun {
  run: number;
  began: number;
  printed: ScriptLine[];
  requests: number;
  /** Aborts its requests; undefined until it makes one. */
  over: AbortController | undefined;
  wall: NodeJS.Timeout;
}

type Kill = (kind: ScriptFailureKind, message: string) => void;

/** Starts a thread. It keeps the process alive only while it runs a script. */
function startThread(options: ThreadOptions): Thread {
  const { limits, onReady, onMaking, onEnd } = options;
  const { worker, send, receive, giveAway, terminate } = openWorker(options);
  let isEnding = false;
  // A thread that does not end in time is given up, and another one takes its place.
  const end = async () => {
    isEnding = true;
    await terminate();
    onEnd();
  };
  const kill: Kill = (kind, message) => {
    const cpuMs = kind === 'cpu' ? limits.cpuMs : 0;
    const used = { cpuMs, memoryBytes: 0, outputBytes: 0, requests: runs.current()?.requests ?? 0 };
    runs.end({ failure: { kind, message } }, used, 'make');
    runs.stopWatch();
    void end();
  };
  const runs = countRuns(worker, limits, kill);
  const free = () => {
    runs.stopWatch();
    worker.unref();
    onReady();
  };
  receive((message) => {
    // A late message must not unreference a thread that is being terminated: the process would end before it.
    if (isEnding) return;
    const current = runs.current();
    if ('processorMs' in message) runs.setUsed(message.processorMs);
    if (message.type === 'ready') free();
    else if (message.type === 'outcome') {
      runs.end(outcomeOf(message), usageOf(message), message.next);
      if (message.next === 'wait') free();
      if (message.next === 'make') onMaking();
    } else if (current === undefined) return;
    else if (message.type === 'log') current.printed.push({ level: message.level, text: message.text });
    else {
      const isOver = () => runs.current() !== current;
      void request(options, message, current).then((answer) => isOver() || send(answer));
    }
  });
  worker.on('error', () => kill(...CRASHED));
  worker.on('exit', () => {
    kill(...CRASHED);
    onEnd();
  });
  return {
    end,
    leave: async () => {
      const wasRunning = !isEnding;
      isEnding = true;
      if (wasRunning && giveAway()) onEnd();
      else await end();
    },
    isAsking: () => runs.current()?.over !== undefined,
    run: (sequence) => {
      worker.ref();
      const { run, outcomes } = runs.begin(sequence);
      send({ type: 'run', run, ...sequence });
      return outcomes;
    },
  };
}

/** @returns the answer for the thread. */
async function request(
  { outbound, limits }: ThreadOptions,
  asked: RequestMessage,
  of: CurrentRun,
): Promise<AnswerMessage> {
  of.requests++;
  of.over ??= new AbortController();
  const answer = await scriptRequest(outbound, readRequest(asked), of.over.signal, limits.wallMs);
  return { type: 'answer', run: of.run, id: asked.id, ...answer };
}

function countRuns(worker: Worker, limits: ScriptLimits, kill: Kill) {
  let last = 0;
  let current: CurrentRun | undefined;
  let outcomes: JobOutcome[] = [];
  let done: ((outcomes: JobOutcome[]) => void) | undefined;
  let stopWatch = () => {};
  let used = 0;
  const { cpuMs, graceMs } = limits;
  const endLate = () => {
    const { kind, message } = tooLate(limits);
    kill(kind, message);
  };
  const endOverused = () => kill('cpu', `it used the processor for more than ${cpuMs} ms`);
  const next = (run: number, spentMs = 0) => {
    current = beginRun(run, endLate, limits, spentMs);
    stopWatch();
    stopWatch = watchOver({ worker, used, most: cpuMs + graceMs, tooMuch: endOverused });
  };
  return {
    current: () => current,
    /** @returns the number of its first run, and the outcomes. */
    begin: ({ jobs, spentMs }: JobSequence) => {
      const { promise, resolve } = Promise.withResolvers<JobOutcome[]>();
      const first = last + 1;
      last += jobs.length;
      outcomes = [];
      done = resolve;
      next(first, spentMs);
      return { run: first, outcomes: promise };
    },
    end: (
      outcome: Pick<JobOutcome, 'result' | 'failure'>,
      used: Omit<ScriptUsage, 'wallMs'>,
      afterwards: OutcomeMessage['next'],
    ) => {
      if (current === undefined) return;
      const { run } = current;
      outcomes.push(endRun(current, outcome, used));
      current = undefined;
      if (afterwards === 'run') next(run + 1);
      else done?.(outcomes);
    },
    /** Sets the processor time that the thread had used before the next run, milliseconds. */
    setUsed: (processorMs: number) => {
      used = processorMs;
    },
    /** Stops watching the thread until the next run begins. */
    stopWatch: () => stopWatch(),
  };
}

/** @param spentMs how much of its time it has used in another thread, milliseconds. */
export const beginRun = (
  run: number,
  endLate: () => void,
  { wallMs }: ScriptLimits,
  spentMs = 0,
): CurrentRun => {
  const wall = setTimeout(endLate, Math.max(0, wallMs - spentMs));
  return { run, began: performance.now() - spentMs, printed: [], requests: 0, over: undefined, wall };
};

/** The failure of a run that did not end in time. */
export const tooLate = ({ wallMs }: ScriptLimits): ScriptFailure => ({
  kind: 'wall',
  message: `it did not answer within ${wallMs} ms`,
});

const CRASHED: [ScriptFailureKind, string] = ['crashed', 'it could not be run to its end'];

/**
 * Ends a run: stops its timer and aborts its requests.
 * @param used with `wallMs` where the thread measured it.
 * @returns the outcome.
 */
export function endRun(
  { began, printed, over, wall }: CurrentRun,
  outcome: Pick<JobOutcome, 'result' | 'failure'>,
  used: Omit<ScriptUsage, 'wallMs'> & Partial<ScriptUsage>,
): JobOutcome {
  clearTimeout(wall);
  over?.abort();
  return { ...outcome, printed, used: { wallMs: performance.now() - began, ...used } };
}

export const outcomeOf = ({ result, failure }: OutcomeMessage): Pick<JobOutcome, 'result' | 'failure'> =>
  failure === undefined ? { result: result ?? 'null' } : { failure };

export const usageOf = ({ cpuMs, memoryBytes, outputBytes, requests }: OutcomeMessage) => ({
  cpuMs,
  memoryBytes,
  outputBytes,
  requests,
});

// Opens the threads that scripts run in: new ones, or spare ones that another owner has used.

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
    receive: (listener: (message: FromThread) => void) => {
      worker.on('message', (messages: readonly FromThread[]) => {
        for (const message of messages) listener(message);
      });
    },
    /** @returns false where there are none. */
    giveAway: (): boolean => {
      if (spareThreads !== undefined) putSpare(spareThreads, work, worker);
      return spareThreads !== undefined;
    },
  };
}

const newWorker = (data: ThreadData): Worker =>
  startWorker({
    name: 'script',
    module: moduleBeside(import.meta.url, 'script-worker'),
    memory: RESOURCES,
    data,
  });
