// A script thread, seen from this process: starts runs, makes the requests of scripts, and terminates the thread when a
// run takes too long or blocks it.
import type { Worker } from 'node:worker_threads';
import type { Outbound } from '../../http/outbound.ts';
import { watchOver } from '../../runtime/worker-thread.ts';
import type { ScriptFailure, ScriptFailureKind, ScriptLimits, ScriptLine, ScriptUsage } from './limits.ts';
import type { AnswerMessage, JobSequence, OutcomeMessage, RequestMessage } from './messages.ts';
import { openWorker, type WorkerOptions } from './open-worker.ts';
import { readRequest, scriptRequest } from './requests.ts';

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
  /** Called when the thread can take a sequence. */
  onReady(): void;
  /** Called when its run has ended and it makes another sandbox. */
  onMaking(): void;
  /** Called when the thread has ended, or is given up because it did not end in time; perhaps for both. */
  onEnd(): void;
}

/** The run in progress. */
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
export function startThread(options: ThreadOptions): Thread {
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

/** Makes a request of a script. @returns the answer for the thread. */
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

/** Tracks the runs of a thread, and limits their time. */
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
    /** The run in progress. */
    current: () => current,
    /** Starts a sequence. @returns the number of its first run, and the outcomes. */
    begin: ({ jobs, spentMs }: JobSequence) => {
      const { promise, resolve } = Promise.withResolvers<JobOutcome[]>();
      const first = last + 1;
      last += jobs.length;
      outcomes = [];
      done = resolve;
      next(first, spentMs);
      return { run: first, outcomes: promise };
    },
    /** Ends the run in progress. */
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

/** Begins a run. @param spentMs how much of its time it has used in another thread, milliseconds. */
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

/** Returns the result or failure in a thread's message. */
export const outcomeOf = ({ result, failure }: OutcomeMessage): Pick<JobOutcome, 'result' | 'failure'> =>
  failure === undefined ? { result: result ?? 'null' } : { failure };

/** Returns what a run used, from a thread's message. */
export const usageOf = ({ cpuMs, memoryBytes, outputBytes, requests }: OutcomeMessage) => ({
  cpuMs,
  memoryBytes,
  outputBytes,
  requests,
});
