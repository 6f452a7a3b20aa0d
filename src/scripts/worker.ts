// A thread that runs scripts, one after the other, each in a sandbox that knows nothing of those before. It is made ready while
// the thread waits. What a script may use of processor, memory, output and requests is counted here; time is counted by the process,
// which also ends a thread that does not answer any more.
import { parentPort, workerData } from 'node:worker_threads';
import { HOST_FUNCTIONS, type Plain } from './host-functions.ts';
import type { ScriptFailure } from './limits.ts';
import type {
  FromThread,
  Job,
  ModuleFiles,
  OutcomeMessage,
  Passing,
  ThreadData,
  ToThread,
} from './messages.ts';
import { createSandbox, type Sandbox, type Uncaught } from './sandbox.ts';

const { wasmModule, limits } = workerData as ThreadData;
const say = (message: FromThread) => parentPort?.postMessage(message);

/** The largest body of a request, bytes; and what else it has, as JSON. */
const LARGEST_BODY = 1024 * 1024;
const LARGEST_HEAD = 64 * 1024;
/** What a printed line counts at least, bytes: there must be no end of empty ones, either. */
const LINE = 50;

/** Time of the processor that this thread has used, milliseconds; where Node cannot tell, time. */
const processorTime = () => {
  if (!('threadCpuUsage' in process)) return performance.now();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

const sayReady = () => say({ type: 'ready', processorMs: processorTime() });

/** A run, or a sandbox that waits for one. */
interface State {
  /** The number of the run; 0 before it has begun. */
  run: number;
  sandbox: Sandbox | undefined;
  files: ModuleFiles | undefined;
  outcome: Pick<OutcomeMessage, 'result' | 'failure'> | undefined;
  cpuMs: number;
  /** When the call that runs now began, in processor time. */
  entered: number | undefined;
  printed: number;
  result: number;
  requests: number;
  unanswered: number;
  timer: NodeJS.Timeout | undefined;
}

let state = newState(undefined);
/** The jobs that are to run after this one. */
let next: readonly Job[] = [];
let passing: Passing = { methods: [], most: 0 };

function newState(sandbox: Sandbox | undefined): State {
  return {
    run: 0,
    sandbox,
    files: undefined,
    outcome: undefined,
    cpuMs: 0,
    entered: undefined,
    printed: 0,
    result: 0,
    requests: 0,
    unanswered: 0,
    timer: undefined,
  };
}

async function make(): Promise<void> {
  const sandbox = await createSandbox({
    wasmModule,
    memoryBytes: limits.memoryBytes,
    host: (name, args) => answer(state, name, args),
    isOver: () => isOver(state),
  });
  state = newState(sandbox);
}

function isOver(own: State): boolean {
  if (own.outcome !== undefined) return true;
  const used = own.cpuMs + (own.entered === undefined ? 0 : processorTime() - own.entered);
  if (used < limits.cpuMs) return false;
  fail(own, { kind: 'cpu', message: `it used the processor for more than ${limits.cpuMs} ms` });
  return true;
}

/** The first outcome counts. */
function fail(own: State, failure: ScriptFailure): void {
  own.outcome ??= { failure };
}

/** What the sandbox asks for. @throws Error that the script may read. */
function answer(own: State, name: string, args: readonly Plain[]): Plain | undefined {
  const [first = '', second = '', third = '', fourth = ''] = args;
  switch (name) {
    case 'log':
      print(own, String(first).slice(0, 10), String(second));
      return undefined;
    case 'wake':
      wake(own, String(first));
      return undefined;
    case 'link':
      return own.files?.get(String(first))?.links.get(String(second)) ?? 'none';
    case 'file':
      return own.files?.get(String(first))?.source ?? '';
    case 'request':
      request(own, { id: String(first), head: String(second), body: third });
      return undefined;
    case 'succeed':
      succeed(own, String(first));
      return undefined;
    case 'fail':
      fail(own, {
        ...scriptFailure(own, { name: String(first), message: String(second) }, third === 'syntax'),
        ...(fourth !== '' && { code: String(fourth).slice(0, 100) }),
      });
      return undefined;
    default: {
      const compute = Object.hasOwn(HOST_FUNCTIONS, name) ? HOST_FUNCTIONS[name] : undefined;
      if (compute === undefined) throw new Error(`there is no ${name}`);
      return compute(first, second, third, fourth);
    }
  }
}

function succeed(own: State, result: string): void {
  own.result = Buffer.byteLength(result);
  if (own.result > limits.outputBytes) {
    fail(own, { kind: 'output', message: `its result is larger than ${limits.outputBytes} bytes` });
  }
  own.outcome ??= { result };
}

function scriptFailure(own: State, { name, message }: Uncaught, isOfSource = false): ScriptFailure {
  const isMemory = message === 'out of memory';
  // Where there is no memory for the error either, it is null.
  if (isMemory || (own.sandbox?.isFull() === true && (message === 'null' || message === ''))) {
    return { kind: 'memory', message: `it used more than ${limits.memoryBytes} bytes of memory` };
  }
  return {
    kind: isOfSource ? 'syntax' : 'script',
    name: name.slice(0, 100),
    message: message.slice(0, 1000),
  };
}

function print(own: State, level: string, text: string): void {
  const size = Math.max(LINE, Buffer.byteLength(text));
  const isFirstTooMany = own.printed <= limits.outputBytes && own.printed + size > limits.outputBytes;
  own.printed += size;
  if (isFirstTooMany) say({ type: 'log', level: 'warn', text: '(what it prints from here on is not kept)' });
  if (own.printed <= limits.outputBytes) say({ type: 'log', level, text });
}

/** There is one timer: how many the script has is its own memory. */
function wake(own: State, ms: string): void {
  clearTimeout(own.timer);
  own.timer = undefined;
  if (ms === '') return;
  own.timer = setTimeout(() => {
    own.timer = undefined;
    enter(own, 'deliver', ['timers']);
  }, Number(ms));
}

function request(own: State, asked: { id: string; head: string; body: Plain }): void {
  if (own.outcome !== undefined) return;
  if (asked.body.length > LARGEST_BODY || asked.head.length > LARGEST_HEAD) {
    throw new Error('the request is too large');
  }
  own.requests++;
  if (own.requests > limits.requests) {
    fail(own, { kind: 'requests', message: `it made more than ${limits.requests} requests` });
    return;
  }
  own.unanswered++;
  say({ type: 'request', ...asked });
}

/** Runs a part of the script, and ends the run when it has an outcome. */
function enter(own: State, name: 'start' | 'deliver', args: readonly Plain[]): void {
  if (own !== state || own.sandbox === undefined || own.outcome !== undefined) return;
  own.entered = processorTime();
  try {
    const uncaught = own.sandbox.call(name, args);
    if (uncaught !== undefined) fail(own, scriptFailure(own, uncaught));
  } catch {
    // The engine itself gave up: no memory for what it needed, or too deep a recursion in it.
    const isFull = own.sandbox.isFull();
    fail(
      own,
      isFull
        ? { kind: 'memory', message: `it used more than ${limits.memoryBytes} bytes of memory` }
        : { kind: 'crashed', message: 'it could not be run to its end' },
    );
  }
  own.cpuMs += processorTime() - own.entered;
  own.entered = undefined;
  if (own.outcome === undefined && own.unanswered === 0 && own.timer === undefined) {
    fail(own, { kind: 'unanswered', message: 'it ended without calling its callback' });
  }
  if (own.outcome !== undefined) end(own, own.outcome);
}

function end(own: State, outcome: NonNullable<State['outcome']>): void {
  clearTimeout(own.timer);
  const memoryBytes = own.sandbox?.memoryBytes() ?? 0;
  const isReset = own.sandbox?.reset() === true;
  state = newState(isReset ? own.sandbox : undefined);
  const [job, ...rest] = isPassing(outcome.result) ? next : [];
  next = rest;
  say({
    type: 'outcome',
    ...outcome,
    cpuMs: own.cpuMs,
    memoryBytes,
    outputBytes: own.result + own.printed,
    requests: own.requests,
    next: job !== undefined ? 'run' : isReset ? 'wait' : 'make',
    processorMs: processorTime(),
  });
  void goOn(own.run + 1, job, isReset);
}

async function goOn(run: number, job: Job | undefined, isReset: boolean): Promise<void> {
  if (!isReset) await make();
  if (job !== undefined) start(run, job);
  else if (!isReset) sayReady();
}

/** Whether a result, JSON, is one with which the next job may begin. */
function isPassing(result: string | undefined): boolean {
  if (next.length === 0 || result === undefined) return false;
  const commands: unknown = JSON.parse(result);
  const isPassed = (one: Partial<{ method: string; args: unknown }> | null) =>
    passing.methods.includes(one?.method ?? '') && Array.isArray(one?.args);
  return Array.isArray(commands) && commands.length <= passing.most && commands.every(isPassed);
}

function start(run: number, { source, entry, args, globals, files }: Job): void {
  state.run = run;
  state.files = files;
  enter(state, 'start', [source, entry, args, globals]);
}

parentPort?.on('message', (message: ToThread) => {
  if (message.type === 'take') return sayReady();
  if (message.type === 'run') {
    const [job, ...rest] = message.jobs;
    next = rest;
    passing = message.passing;
    return job && start(message.run, job);
  }
  // An answer to the run before, which has ended meanwhile.
  if (message.run !== state.run) return undefined;
  state.unanswered--;
  return enter(state, 'deliver', [message.id, message.head, message.content]);
});

await make();
sayReady();
