// A thread of the sandbox, seen from this process: begins runs, makes the requests of scripts, and ends the thread when a
// run takes too long or does not let go of the processor.
import { Worker } from 'node:worker_threads';
import type { Outbound } from '../http/outbound.ts';
import type { ScriptFailure, ScriptFailureKind, ScriptLine, ScriptUsage } from './limits.ts';
import type { FromThread, OutcomeMessage, RequestMessage, ThreadData, ToThread } from './messages.ts';
import { scriptRequest } from './requests.ts';

/** A run that is about to begin. */
export interface Job {
  source: string;
  entry: string;
  /** JSON. */
  args: string;
  /** JSON. */
  globals: string;
}

export interface JobOutcome {
  /** JSON. */
  result?: string;
  failure?: ScriptFailure;
  used: ScriptUsage;
  printed: ScriptLine[];
}

export interface Thread {
  /** Only when it is ready. */
  run(job: Job): Promise<JobOutcome>;
  end(): Promise<unknown>;
}

interface ThreadOptions extends ThreadData {
  outbound: Outbound;
  /** It can take a run. */
  onReady(): void;
  /** It is no more. */
  onEnd(): void;
}

/** How long a thread may be busy beyond what a script may use of the processor, milliseconds: it counts, too. */
const GRACE = 500;
/** How often that is looked at, milliseconds. */
const CHECK = 100;
/** The thread's own memory, beside that of the sandbox. */
const RESOURCES = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2, stackSizeMb: 4 };

interface Current {
  job: number;
  began: number;
  printed: ScriptLine[];
  requests: number;
  /** Aborts its requests. */
  over: AbortController;
  wall: NodeJS.Timeout;
  done(outcome: JobOutcome): void;
}

/** Starts one. It does not keep the process alive, except while it runs a script. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: its jobs and their requests are one state
export function startThread({ wasmModule, limits, outbound, onReady, onEnd }: ThreadOptions): Thread {
  const worker = newWorker({ wasmModule, limits });
  let jobs = 0;
  let current: Current | undefined;
  let watch: NodeJS.Timeout | undefined;
  let isEnding = false;
  const say = (message: ToThread) => worker.postMessage(message);

  const finish = (outcome: Pick<JobOutcome, 'result' | 'failure'>, used: Omit<ScriptUsage, 'wallMs'>) => {
    if (current === undefined) return;
    const { began, printed, over, wall, done } = current;
    current = undefined;
    clearTimeout(wall);
    over.abort();
    done({ ...outcome, printed, used: { ...used, wallMs: performance.now() - began } });
  };
  const end = () => {
    isEnding = true;
    return worker.terminate();
  };
  const kill = (kind: ScriptFailureKind, message: string) => {
    clearInterval(watch);
    const requests = current?.requests ?? 0;
    const cpuMs = kind === 'cpu' ? limits.cpuMs : 0;
    finish({ failure: { kind, message } }, { cpuMs, memoryBytes: 0, outputBytes: 0, requests });
    void end();
  };
  const request = async (asked: RequestMessage) => {
    const of = current;
    if (of === undefined) return;
    of.requests++;
    const answer = await scriptRequest(outbound, asked, of.over.signal, limits.wallMs);
    if (current === of) say({ type: 'answer', run: of.job, id: asked.id, ...answer });
  };
  worker.on('message', (message: FromThread) => {
    // What it says while it is being ended must not let the process end before it has.
    if (isEnding) return;
    if (message.type === 'ready') {
      clearInterval(watch);
      worker.unref();
      onReady();
    } else if (message.type === 'log') {
      current?.printed.push({ level: message.level, text: message.text });
    } else if (message.type === 'request') void request(message);
    else finish(outcomeOf(message), usageOf(message));
  });
  worker.on('error', () => kill('crashed', 'it could not be run to its end'));
  worker.on('exit', () => {
    kill('crashed', 'it could not be run to its end');
    onEnd();
  });
  return {
    end,
    run: (job) => {
      const { promise, resolve } = Promise.withResolvers<JobOutcome>();
      worker.ref();
      const { wallMs, cpuMs } = limits;
      const late = () => kill('wall', `it did not answer within ${wallMs} ms`);
      current = {
        job: ++jobs,
        began: performance.now(),
        printed: [],
        requests: 0,
        over: new AbortController(),
        wall: setTimeout(late, wallMs),
        done: resolve,
      };
      watch = watchOver(worker, cpuMs + GRACE, () =>
        kill('cpu', `it used the processor for more than ${cpuMs} ms`),
      );
      say({ type: 'run', run: jobs, ...job });
      return promise;
    },
  };
}

function newWorker(workerData: ThreadData): Worker {
  // The published package holds JavaScript; the repository runs the TypeScript as it is.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./worker.${extension}`, import.meta.url), {
    workerData,
    name: 'script',
    resourceLimits: RESOURCES,
    env: {},
    execArgv: [],
  });
}

/**
 * Calls back when the thread has been busy for longer, all in all: some of what a script calls asks nobody whether it
 * is to end.
 */
function watchOver(worker: Worker, ms: number, onBusy: () => void): NodeJS.Timeout {
  const before = worker.performance.eventLoopUtilization();
  return setInterval(() => {
    if (worker.performance.eventLoopUtilization(before).active > ms) onBusy();
  }, CHECK);
}

const outcomeOf = ({ result, failure }: OutcomeMessage): Pick<JobOutcome, 'result' | 'failure'> =>
  failure === undefined ? { result: result ?? 'null' } : { failure };

const usageOf = ({ cpuMs, memoryBytes, outputBytes, requests }: OutcomeMessage) => ({
  cpuMs,
  memoryBytes,
  outputBytes,
  requests,
});
