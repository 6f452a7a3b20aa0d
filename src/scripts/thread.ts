// A thread of the sandbox, seen from this process: begins runs, makes the requests of scripts, and ends the thread when a
// run takes too long or does not let go of the processor.
import { Worker } from 'node:worker_threads';
import type { Outbound } from '../http/outbound.ts';
import { threadEnvironment } from '../runtime/compile-cache.js';
import type { ScriptFailure, ScriptFailureKind, ScriptLimits, ScriptLine, ScriptUsage } from './limits.ts';
import type {
  FromThread,
  ModuleFiles,
  OutcomeMessage,
  RequestMessage,
  ThreadData,
  ToThread,
} from './messages.ts';
import { scriptRequest } from './requests.ts';

/** A run that is about to begin. */
export interface Job {
  source: string;
  entry: string;
  /** JSON. */
  args: string;
  /** JSON. */
  globals: string;
  /** Packages that it may require. */
  files?: ModuleFiles | undefined;
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
export function startThread({ wasmModule, limits, outbound, onReady, onEnd }: ThreadOptions): Thread {
  const worker = newWorker({ wasmModule, limits });
  let jobs = 0;
  let current: Current | undefined;
  let watch: NodeJS.Timeout | undefined;
  let isEnding = false;
  const say = (message: ToThread) => worker.postMessage(message);
  const finish = (outcome: Pick<JobOutcome, 'result' | 'failure'>, used: Omit<ScriptUsage, 'wallMs'>) => {
    if (current !== undefined) endRun(current, outcome, used);
    current = undefined;
  };
  const end = () => {
    isEnding = true;
    return worker.terminate();
  };
  const kill = (kind: ScriptFailureKind, message: string) => {
    clearInterval(watch);
    const cpuMs = kind === 'cpu' ? limits.cpuMs : 0;
    const used = { cpuMs, memoryBytes: 0, outputBytes: 0, requests: current?.requests ?? 0 };
    finish({ failure: { kind, message } }, used);
    void end();
  };
  const request = async (asked: RequestMessage, of: Current) => {
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
    } else if (message.type === 'outcome') finish(outcomeOf(message), usageOf(message));
    else if (current === undefined) return;
    else if (message.type === 'log') current.printed.push({ level: message.level, text: message.text });
    else void request(message, current);
  });
  worker.on('error', () => kill(...CRASHED));
  worker.on('exit', () => {
    kill(...CRASHED);
    onEnd();
  });
  return {
    end,
    run: (job) => {
      worker.ref();
      const { promise, resolve } = Promise.withResolvers<JobOutcome>();
      current = newRun(++jobs, limits, kill, resolve);
      watch = watchOver(worker, limits, kill);
      say({ type: 'run', run: jobs, ...job });
      return promise;
    },
  };
}

const CRASHED: [ScriptFailureKind, string] = ['crashed', 'it could not be run to its end'];

function newRun(
  job: number,
  { wallMs }: ScriptLimits,
  kill: (kind: ScriptFailureKind, message: string) => void,
  done: Current['done'],
): Current {
  const wall = setTimeout(() => kill('wall', `it did not answer within ${wallMs} ms`), wallMs);
  return { job, began: performance.now(), printed: [], requests: 0, over: new AbortController(), wall, done };
}

function endRun(
  { began, printed, over, wall, done }: Current,
  outcome: Pick<JobOutcome, 'result' | 'failure'>,
  used: Omit<ScriptUsage, 'wallMs'>,
): void {
  clearTimeout(wall);
  over.abort();
  done({ ...outcome, printed, used: { ...used, wallMs: performance.now() - began } });
}

function newWorker(workerData: ThreadData): Worker {
  // The published package holds JavaScript; the repository runs the TypeScript as it is.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./worker.${extension}`, import.meta.url), {
    workerData,
    name: 'script',
    resourceLimits: RESOURCES,
    env: threadEnvironment(),
    execArgv: [],
  });
}

/** Ends a thread that was busy for longer than it may be: some of what a script calls asks nobody whether it is to end. */
function watchOver(
  worker: Worker,
  { cpuMs }: ScriptLimits,
  kill: (kind: ScriptFailureKind, message: string) => void,
): NodeJS.Timeout {
  const before = worker.performance.eventLoopUtilization();
  return setInterval(() => {
    if (worker.performance.eventLoopUtilization(before).active < cpuMs + GRACE) return;
    kill('cpu', `it used the processor for more than ${cpuMs} ms`);
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
