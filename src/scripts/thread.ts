// A thread of the sandbox, seen from this process: begins runs, makes the requests of scripts, and ends the thread when a
// run takes too long or does not let go of the processor.
import type { Worker } from 'node:worker_threads';
import type { Outbound } from '../http/outbound.ts';
import type { ScriptFailure, ScriptFailureKind, ScriptLimits, ScriptLine, ScriptUsage } from './limits.ts';
import type { AnswerMessage, OutcomeMessage, RequestMessage, Trip } from './messages.ts';
import { openWorker, type WorkerOptions } from './open-worker.ts';
import { readRequest, scriptRequest } from './requests.ts';
import { watchOver } from './watch.ts';

export interface JobOutcome {
  /** JSON. */
  result?: string;
  failure?: ScriptFailure;
  used: ScriptUsage;
  printed: ScriptLine[];
}

export interface Thread {
  /** Only when it is ready. @returns what became of the jobs, as far as they ran. */
  run(trip: Trip): Promise<JobOutcome[]>;
  /** Whether what it runs has asked others: it may wait for them. */
  isAsking(): boolean;
  /** Ends it, whatever it does. */
  end(): Promise<unknown>;
  /** Only when it is ready, and is to be so for nobody: gives it away, or ends it. */
  leave(): Promise<unknown>;
}

interface ThreadOptions extends WorkerOptions {
  outbound: Outbound;
  /** It can take a run. */
  onReady(): void;
  /** Its run has ended, and it makes another sandbox. */
  onMaking(): void;
  /** It is no more. */
  onEnd(): void;
}

/** A run. */
export interface Current {
  run: number;
  began: number;
  printed: ScriptLine[];
  requests: number;
  /** Aborts its requests; there when it has made one. */
  over: AbortController | undefined;
  wall: NodeJS.Timeout;
}

type Kill = (kind: ScriptFailureKind, message: string) => void;

/** Starts one. It does not keep the process alive, except while it runs a script. */
export function startThread(options: ThreadOptions): Thread {
  const { limits, onReady, onMaking, onEnd } = options;
  const { worker, say, hear, giveAway } = openWorker(options);
  let isEnding = false;
  const end = () => {
    isEnding = true;
    return worker.terminate();
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
  hear((message) => {
    // What it says while it is being ended must not let the process end before it has.
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
      void request(options, message, current).then((answer) => isOver() || say(answer));
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
      const mayGoOn = !isEnding;
      isEnding = true;
      if (mayGoOn && giveAway()) onEnd();
      else await worker.terminate();
    },
    isAsking: () => runs.current()?.over !== undefined,
    run: (trip) => {
      worker.ref();
      const { run, outcomes } = runs.begin(trip);
      say({ type: 'run', run, ...trip });
      return outcomes;
    },
  };
}

/** Makes a request of a script. @returns what the thread is told of it. */
async function request(
  { outbound, limits }: ThreadOptions,
  asked: RequestMessage,
  of: Current,
): Promise<AnswerMessage> {
  of.requests++;
  of.over ??= new AbortController();
  const answer = await scriptRequest(outbound, readRequest(asked), of.over.signal, limits.wallMs);
  return { type: 'answer', run: of.run, id: asked.id, ...answer };
}

/** Keeps account of the runs of a thread, and of their time. */
function countRuns(worker: Worker, limits: ScriptLimits, kill: Kill) {
  let last = 0;
  let current: Current | undefined;
  let outcomes: JobOutcome[] = [];
  let done: ((outcomes: JobOutcome[]) => void) | undefined;
  let stopWatch = () => {};
  let used = 0;
  const { cpuMs, graceMs } = limits;
  const late = () => {
    const { kind, message } = tooLate(limits);
    kill(kind, message);
  };
  const tooMuch = () => kill('cpu', `it used the processor for more than ${cpuMs} ms`);
  const next = (run: number, spentMs = 0) => {
    current = beginRun(run, late, limits, spentMs);
    stopWatch();
    stopWatch = watchOver({ worker, used, most: cpuMs + graceMs, tooMuch });
  };
  return {
    /** The one that runs now. */
    current: () => current,
    /** They begin. @returns the number of the first. */
    begin: ({ jobs, spentMs }: Trip) => {
      const { promise, resolve } = Promise.withResolvers<JobOutcome[]>();
      const first = last + 1;
      last += jobs.length;
      outcomes = [];
      done = resolve;
      next(first, spentMs);
      return { run: first, outcomes: promise };
    },
    /** The one that runs now has ended. */
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
    /** What the thread had used of the processor before the next begins, milliseconds. */
    setUsed: (processorMs: number) => {
      used = processorMs;
    },
    /** Nothing has to be looked after until the next begins. */
    stopWatch: () => stopWatch(),
  };
}

/** A run that begins. @param spentMs what it has had of its time elsewhere. */
export const beginRun = (run: number, late: () => void, { wallMs }: ScriptLimits, spentMs = 0): Current => {
  const wall = setTimeout(late, Math.max(0, wallMs - spentMs));
  return { run, began: performance.now() - spentMs, printed: [], requests: 0, over: undefined, wall };
};

/** The failure of a run that did not end in time. */
export const tooLate = ({ wallMs }: ScriptLimits): ScriptFailure => ({
  kind: 'wall',
  message: `it did not answer within ${wallMs} ms`,
});

const CRASHED: [ScriptFailureKind, string] = ['crashed', 'it could not be run to its end'];

/** A run has ended: nothing of it goes on. @param used with the time, where the thread told it. @returns what became of it. */
export function endRun(
  { began, printed, over, wall }: Current,
  outcome: Pick<JobOutcome, 'result' | 'failure'>,
  used: Omit<ScriptUsage, 'wallMs'> & Partial<ScriptUsage>,
): JobOutcome {
  clearTimeout(wall);
  over?.abort();
  return { ...outcome, printed, used: { wallMs: performance.now() - began, ...used } };
}

/** What a thread says of a run. */
export const outcomeOf = ({ result, failure }: OutcomeMessage): Pick<JobOutcome, 'result' | 'failure'> =>
  failure === undefined ? { result: result ?? 'null' } : { failure };

/** What it says that a run used. */
export const usageOf = ({ cpuMs, memoryBytes, outputBytes, requests }: OutcomeMessage) => ({
  cpuMs,
  memoryBytes,
  outputBytes,
  requests,
});
