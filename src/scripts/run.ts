// A run in its thread: answers what its script calls, and limits its output, requests and processor time.
import { compute, type Plain } from './host-functions.ts';
import type { ScriptFailure, ScriptLimits } from './limits.ts';
import type { FromThread, Job, ModuleFiles, OutcomeMessage, Passing } from './messages.ts';
import { NO_MEMORY, type Sandbox, type Uncaught } from './sandbox.ts';

/** Largest body of a request, bytes, and largest rest of it as JSON, characters. */
const LARGEST_BODY = 1024 * 1024;
const LARGEST_HEAD = 64 * 1024;
/** What a printed line counts at least, bytes, so that empty lines are limited, too. */
const LINE = 50;

/** The longest delay that Node.js supports without a warning, milliseconds. */
const LONGEST_DELAY = 2 ** 31 - 1;

/** A sandbox, and the run in it. */
export interface Cell {
  sandbox: Sandbox;
  state: State | undefined;
}

/** What a run needs of its thread. */
export interface Surroundings {
  limits: ScriptLimits;
  send(message: FromThread): void;
  /** Called when timers of the script are due. */
  wake(run: State): void;
}

/** The state of a run. */
export interface State {
  thread: Surroundings;
  run: number;
  cell: Cell;
  files: ModuleFiles | undefined;
  /** The jobs to run after this one. */
  next: readonly Job[];
  passing: Passing;
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

type Begun = Pick<State, 'thread' | 'run' | 'cell' | 'files' | 'next' | 'passing'>;

/** Makes the state of a run that begins. */
export function newState({ thread, run, cell, files, next, passing }: Begun): State {
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
export function isOver(own: State): boolean {
  const { cpuMs } = own.thread.limits;
  if (own.outcome !== undefined) return true;
  const used = own.cpuMs + (own.entered?.() ?? 0);
  if (used < cpuMs) return false;
  fail(own, { kind: 'cpu', message: `it used the processor for more than ${cpuMs} ms` });
  return true;
}

/** Fails a run, unless it has an outcome already. */
export function fail(own: State, failure: ScriptFailure): void {
  own.outcome ??= { failure };
}

/** Answers a call of the sandbox. @throws Error that the script may read. */
export function answer(own: State, name: string, args: readonly Plain[]): Plain | undefined {
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
    default:
      return compute(name, args);
  }
}

function succeed(own: State, result: string): void {
  const { limits } = own.thread;
  own.result = Buffer.byteLength(result);
  if (own.result > limits.outputBytes) {
    fail(own, { kind: 'output', message: `its result is larger than ${limits.outputBytes} bytes` });
  }
  own.outcome ??= { result };
}

/** Returns the failure of a run whose script ended in an error. */
export function scriptFailure(own: State, { name, message }: Uncaught, isOfSource = false): ScriptFailure {
  const isMemory = message === NO_MEMORY;
  // The error is null where there was no memory left for it.
  if (isMemory || (own.cell.sandbox.isFull() && (message === 'null' || message === ''))) {
    return tooMuchMemory(own);
  }
  return {
    kind: isOfSource ? 'syntax' : 'script',
    name: name.slice(0, 100),
    message: message.slice(0, 1000),
  };
}

function print(own: State, level: string, text: string): void {
  const { limits, send } = own.thread;
  const size = Math.max(LINE, Buffer.byteLength(text));
  const isFirstTooMany = own.printed <= limits.outputBytes && own.printed + size > limits.outputBytes;
  own.printed += size;
  if (isFirstTooMany)
    send({ type: 'log', run: own.run, level: 'warn', text: '(what it prints from here on is not kept)' });
  if (own.printed <= limits.outputBytes) send({ type: 'log', run: own.run, level, text });
}

/** Returns the failure of a run that used too much memory. */
export const tooMuchMemory = ({ thread }: State): ScriptFailure => ({
  kind: 'memory',
  message: `it used more than ${thread.limits.memoryBytes} bytes of memory`,
});

/** Sets the run's only timer. The sandbox keeps the script's timers, in its own memory. */
function wake(own: State, ms: string): void {
  clearTimeout(own.timer);
  own.timer = undefined;
  if (ms === '') return;
  own.timer = setTimeout(
    () => {
      own.timer = undefined;
      own.thread.wake(own);
    },
    Math.min(Number(ms), LONGEST_DELAY),
  );
}

function request(own: State, asked: { id: string; head: string; body: Plain }): void {
  const { limits, send } = own.thread;
  if (own.outcome !== undefined) return;
  if (asked.body.length > LARGEST_BODY || asked.head.length + asked.id.length > LARGEST_HEAD) {
    throw new Error('the request is too large');
  }
  own.requests++;
  if (own.requests > limits.requests) {
    fail(own, { kind: 'requests', message: `it made more than ${limits.requests} requests` });
    return;
  }
  own.unanswered++;
  send({ type: 'request', run: own.run, ...asked });
}
