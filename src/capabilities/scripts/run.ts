// A run in its thread: answers what its script calls, and limits its output, requests and processor time.
import { assertSizes, compute, type Plain } from './host-functions.ts';
import type { ScriptFailure, ScriptLimits } from './limits.ts';
import { NO_MEMORY, type Sandbox, type Uncaught } from './sandbox.ts';
import type { ContinueCondition, FromThread, Job, ModuleFiles, OutcomeMessage } from './scripts-messages.ts';

/** Largest body of a request, bytes, and largest rest of it as JSON, characters. */
const MAX_BODY_BYTES = 1024 * 1024;
const MAX_HEAD_LENGTH = 64 * 1024;
/** What a printed line counts at least, bytes, so that empty lines are limited, too. */
const MIN_LINE_BYTES = 50;

/** The longest delay that Node.js supports without a warning, milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export interface Cell {
  sandbox: Sandbox;
  state: RunState | undefined;
}

export interface RunThread {
  limits: ScriptLimits;
  send(message: FromThread): void;
  /** Called when timers of the script are due. */
  wake(run: RunState): void;
}

export interface RunState {
  thread: RunThread;
  run: number;
  cell: Cell;
  files: ModuleFiles | undefined;
  /** The jobs to run after this one. */
  next: readonly Job[];
  passing: ContinueCondition;
  outcome: Pick<OutcomeMessage, 'result' | 'failure'> | undefined;
  cpuMs: number;
  /** When it began, milliseconds of the process's clock. */
  began: number;
  /** During a call into the sandbox: returns the processor time that the call has used, milliseconds. */
  entered: (() => number) | undefined;
  printed: number;
  result: number;
  requests: number;
  unanswered: number;
  timer: NodeJS.Timeout | undefined;
}

type NewState = Pick<RunState, 'thread' | 'run' | 'cell' | 'files' | 'next' | 'passing'>;

export function newState({ thread, run, cell, files, next, passing }: NewState): RunState {
  return {
    thread,
    run,
    cell,
    files,
    next,
    passing,
    outcome: undefined,
    cpuMs: 0,
    began: performance.now(),
    entered: undefined,
    printed: 0,
    result: 0,
    requests: 0,
    unanswered: 0,
    timer: undefined,
  };
}

/** Reports whether a run is to end: it has an outcome, or has used too much processor time, which fails it. */
export function isOver(state: RunState): boolean {
  const { cpuMs } = state.thread.limits;
  if (state.outcome !== undefined) return true;
  const used = state.cpuMs + (state.entered?.() ?? 0);
  if (used < cpuMs) return false;
  fail(state, { kind: 'cpu', message: `it used the processor for more than ${cpuMs} ms` });
  return true;
}

/** Fails a run, unless it has an outcome already. */
export function fail(state: RunState, failure: ScriptFailure): void {
  state.outcome ??= { failure };
}

/** A function of the run itself. What it does with its arguments is in proportion to their size. */
interface RunFunction {
  /** The largest size of each argument, bytes or characters. @see HostFunction */
  most: readonly number[];
  answer(state: RunState, ...args: string[]): string | undefined;
}

/** As much as a sandbox can hold: larger texts are counted and refused where they arrive, by the limits of output. */
const MAX_TEXT_LENGTH = 64 * 1024 * 1024;
const MAX_NAME_LENGTH = 1024;
/** Longest path of a file in a package, characters. */
const MAX_PATH_LENGTH = 64 * 1024;

const RUN_FUNCTIONS: Readonly<Record<string, RunFunction>> = {
  log: {
    most: [MAX_NAME_LENGTH, MAX_TEXT_LENGTH],
    answer: (state, level = '', text = '') => print(state, level.slice(0, 10), text),
  },
  wake: { most: [MAX_NAME_LENGTH], answer: (state, ms = '') => wake(state, ms) },
  link: {
    most: [MAX_PATH_LENGTH, MAX_PATH_LENGTH],
    answer: ({ files }, path = '', name = '') => files?.get(path)?.links.get(name) ?? 'none',
  },
  file: { most: [MAX_PATH_LENGTH], answer: ({ files }, path = '') => files?.get(path)?.source ?? '' },
  succeed: { most: [MAX_TEXT_LENGTH], answer: (state, result = '') => succeed(state, result) },
  fail: {
    most: [MAX_TEXT_LENGTH, MAX_TEXT_LENGTH, MAX_NAME_LENGTH, MAX_TEXT_LENGTH],
    answer: (state, name = '', message = '', kind = '', code = '') => {
      const failure = scriptFailure(state, { name, message }, kind === 'syntax');
      fail(state, { ...failure, ...(code !== '' && { code: code.slice(0, 100) }) });
      return undefined;
    },
  },
};

/** Answers a call of the sandbox. @throws Error that the script may read. */
export function answer(state: RunState, name: string, args: readonly Plain[]): Plain | undefined {
  if (name === 'request') {
    const [id = '', head = '', body = ''] = args;
    return request(state, { id: String(id), head: String(head), body });
  }
  const runFunction = Object.hasOwn(RUN_FUNCTIONS, name) ? RUN_FUNCTIONS[name] : undefined;
  if (runFunction === undefined) return compute(name, args);
  return runFunction.answer(state, ...assertSizes(name, runFunction.most, args).map(String));
}

function succeed(state: RunState, result: string): undefined {
  const { limits } = state.thread;
  state.result = Buffer.byteLength(result);
  if (state.result > limits.outputBytes) {
    fail(state, { kind: 'output', message: `its result is larger than ${limits.outputBytes} bytes` });
  }
  state.outcome ??= { result };
}

export function scriptFailure(
  state: RunState,
  { name, message }: Uncaught,
  isOfSource = false,
): ScriptFailure {
  const isMemory = message === NO_MEMORY;
  // The error is null where there was no memory left for it.
  if (isMemory || (state.cell.sandbox.isFull() && (message === 'null' || message === ''))) {
    return tooMuchMemory(state);
  }
  return {
    kind: isOfSource ? 'syntax' : 'script',
    name: name.slice(0, 100),
    message: message.slice(0, 1000),
  };
}

function print(state: RunState, level: string, text: string): undefined {
  const { limits, send } = state.thread;
  const size = Math.max(MIN_LINE_BYTES, Buffer.byteLength(text));
  const exceedsLimit = state.printed <= limits.outputBytes && state.printed + size > limits.outputBytes;
  state.printed += size;
  if (exceedsLimit)
    send({ type: 'log', run: state.run, level: 'warn', text: '(what it prints from here on is not kept)' });
  if (state.printed <= limits.outputBytes) send({ type: 'log', run: state.run, level, text });
}

export const tooMuchMemory = ({ thread }: RunState): ScriptFailure => ({
  kind: 'memory',
  message: `it used more than ${thread.limits.memoryBytes} bytes of memory`,
});

/** Sets the run's only timer. The sandbox keeps the script's timers, in its own memory. */
function wake(state: RunState, ms: string): undefined {
  clearTimeout(state.timer);
  state.timer = undefined;
  if (ms === '') return;
  state.timer = setTimeout(
    () => {
      state.timer = undefined;
      state.thread.wake(state);
    },
    Math.min(Number(ms), MAX_DELAY_MS),
  );
}

function request(state: RunState, asked: { id: string; head: string; body: Plain }): undefined {
  const { limits, send } = state.thread;
  if (state.outcome !== undefined) return;
  if (asked.body.length > MAX_BODY_BYTES || asked.head.length + asked.id.length > MAX_HEAD_LENGTH) {
    throw new Error('the request is too large');
  }
  state.requests++;
  if (state.requests > limits.requests) {
    fail(state, { kind: 'requests', message: `it made more than ${limits.requests} requests` });
    return;
  }
  state.unanswered++;
  send({ type: 'request', run: state.run, ...asked });
}
