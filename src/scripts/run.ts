// A run in its thread: answers what its script calls, and limits its output, requests and processor time.
import { compute, type Plain } from './host-functions.ts';
import type { ScriptFailure, ScriptLimits } from './limits.ts';
import type { ContinueCondition, FromThread, Job, ModuleFiles, OutcomeMessage } from './messages.ts';
import { NO_MEMORY, type Sandbox, type Uncaught } from './sandbox.ts';

/** Largest body of a request, bytes, and largest rest of it as JSON, characters. */
const MAX_BODY_BYTES = 1024 * 1024;
const MAX_HEAD_LENGTH = 64 * 1024;
/** What a printed line counts at least, bytes, so that empty lines are limited, too. */
const MIN_LINE_BYTES = 50;

/** The longest delay that Node.js supports without a warning, milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** A sandbox, and the run in it. */
export interface Cell {
  sandbox: Sandbox;
  state: RunState | undefined;
}

/** What a run needs of its thread. */
export interface RunThread {
  limits: ScriptLimits;
  send(message: FromThread): void;
  /** Called when timers of the script are due. */
  wake(run: RunState): void;
}

/** The state of a run. */
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

/** Makes the state of a run that begins. */
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

/** Answers a call of the sandbox. @throws Error that the script may read. */
export function answer(state: RunState, name: string, args: readonly Plain[]): Plain | undefined {
  const [first = '', second = '', third = '', fourth = ''] = args;
  switch (name) {
    case 'log':
      print(state, String(first).slice(0, 10), String(second));
      return undefined;
    case 'wake':
      wake(state, String(first));
      return undefined;
    case 'link':
      return state.files?.get(String(first))?.links.get(String(second)) ?? 'none';
    case 'file':
      return state.files?.get(String(first))?.source ?? '';
    case 'request':
      request(state, { id: String(first), head: String(second), body: third });
      return undefined;
    case 'succeed':
      succeed(state, String(first));
      return undefined;
    case 'fail':
      fail(state, {
        ...scriptFailure(state, { name: String(first), message: String(second) }, third === 'syntax'),
        ...(fourth !== '' && { code: String(fourth).slice(0, 100) }),
      });
      return undefined;
    default:
      return compute(name, args);
  }
}

function succeed(state: RunState, result: string): void {
  const { limits } = state.thread;
  state.result = Buffer.byteLength(result);
  if (state.result > limits.outputBytes) {
    fail(state, { kind: 'output', message: `its result is larger than ${limits.outputBytes} bytes` });
  }
  state.outcome ??= { result };
}

/** Returns the failure of a run whose script ended in an error. */
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

function print(state: RunState, level: string, text: string): void {
  const { limits, send } = state.thread;
  const size = Math.max(MIN_LINE_BYTES, Buffer.byteLength(text));
  const exceedsLimit = state.printed <= limits.outputBytes && state.printed + size > limits.outputBytes;
  state.printed += size;
  if (exceedsLimit)
    send({ type: 'log', run: state.run, level: 'warn', text: '(what it prints from here on is not kept)' });
  if (state.printed <= limits.outputBytes) send({ type: 'log', run: state.run, level, text });
}

/** Returns the failure of a run that used too much memory. */
export const tooMuchMemory = ({ thread }: RunState): ScriptFailure => ({
  kind: 'memory',
  message: `it used more than ${thread.limits.memoryBytes} bytes of memory`,
});

/** Sets the run's only timer. The sandbox keeps the script's timers, in its own memory. */
function wake(state: RunState, ms: string): void {
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

function request(state: RunState, asked: { id: string; head: string; body: Plain }): void {
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
