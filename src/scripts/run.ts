// A run in its thread: what its script asks of the thread, and what it may use of output, requests and the processor.
import { compute, type Plain } from './host-functions.ts';
import type { ScriptFailure, ScriptLimits } from './limits.ts';
import type { FromThread, Job, ModuleFiles, OutcomeMessage, Passing } from './messages.ts';
import { NO_MEMORY, type Sandbox, type Uncaught } from './sandbox.ts';

/** The largest body of a request, bytes; and what else it has, as JSON. */
const LARGEST_BODY = 1024 * 1024;
const LARGEST_HEAD = 64 * 1024;
/** What a printed line counts at least, bytes: there must be no end of empty ones, either. */
const LINE = 50;

/** Node.js warns of more. Milliseconds. */
const LONGEST_DELAY = 2 ** 31 - 1;

/** A sandbox, and what it runs. */
export interface Cell {
  sandbox: Sandbox;
  state: State | undefined;
}

/** The thread of a run. */
export interface Surroundings {
  limits: ScriptLimits;
  say(message: FromThread): void;
  /** Timers of the script are due. */
  wake(run: State): void;
}

/** A run. */
export interface State {
  thread: Surroundings;
  run: number;
  cell: Cell;
  files: ModuleFiles | undefined;
  /** The jobs that are to run after this one. */
  next: readonly Job[];
  passing: Passing;
  outcome: Pick<OutcomeMessage, 'result' | 'failure'> | undefined;
  cpuMs: number;
  /** When it began, milliseconds. */
  began: number;
  /** Of the call that runs now, what it has used of the processor, milliseconds. */
  entered: (() => number) | undefined;
  printed: number;
  result: number;
  requests: number;
  unanswered: number;
  timer: NodeJS.Timeout | undefined;
}

type Begun = Pick<State, 'thread' | 'run' | 'cell' | 'files' | 'next' | 'passing'>;

/** One that begins. */
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

/** Whether it is to end: it has an outcome, or used the processor for too long. */
export function isOver(own: State): boolean {
  const { cpuMs } = own.thread.limits;
  if (own.outcome !== undefined) return true;
  const used = own.cpuMs + (own.entered?.() ?? 0);
  if (used < cpuMs) return false;
  fail(own, { kind: 'cpu', message: `it used the processor for more than ${cpuMs} ms` });
  return true;
}

/** The first outcome counts. */
export function fail(own: State, failure: ScriptFailure): void {
  own.outcome ??= { failure };
}

/** What the sandbox asks for. @throws Error that the script may read. */
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

/** The failure of one whose script ended in an error. */
export function scriptFailure(own: State, { name, message }: Uncaught, isOfSource = false): ScriptFailure {
  const isMemory = message === NO_MEMORY;
  // Where there is no memory for the error either, it is null.
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
  const { limits, say } = own.thread;
  const size = Math.max(LINE, Buffer.byteLength(text));
  const isFirstTooMany = own.printed <= limits.outputBytes && own.printed + size > limits.outputBytes;
  own.printed += size;
  if (isFirstTooMany)
    say({ type: 'log', run: own.run, level: 'warn', text: '(what it prints from here on is not kept)' });
  if (own.printed <= limits.outputBytes) say({ type: 'log', run: own.run, level, text });
}

/** The failure of one that used too much memory. */
export const tooMuchMemory = ({ thread }: State): ScriptFailure => ({
  kind: 'memory',
  message: `it used more than ${thread.limits.memoryBytes} bytes of memory`,
});

/** There is one timer: how many the script has is its own memory. */
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
  const { limits, say } = own.thread;
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
  say({ type: 'request', run: own.run, ...asked });
}
