// A thread that runs scripts, each in a sandbox that knows nothing of those before, nor of those beside it: one after the other,
// or, where the process asks for it, one while others wait. A sandbox is made ready while the thread waits. What a
// script may use of processor, memory, output and requests is counted here; time is counted by the process, which also ends a
// thread that does not answer any more.
import { parentPort, workerData } from 'node:worker_threads';
import { createHeld } from './held.ts';
import { compute, type Plain } from './host-functions.ts';
import { FIRST_BYTES } from './limits.ts';
import type {
  AnswerMessage,
  DropMessage,
  FromThread,
  Job,
  Passing,
  ThreadData,
  ToThread,
} from './messages.ts';
import { isPassing } from './passing.ts';
import { countProcessorTime, processorTime } from './processor-time.ts';
import {
  answer,
  type Cell,
  fail,
  isOver,
  newState,
  type State,
  type Surroundings,
  scriptFailure,
  tooMuchMemory,
} from './run.ts';
import { createSandbox } from './sandbox.ts';
import { createPages } from './snapshot.ts';

const { wasmModule, limits, prepared, entered } = workerData as ThreadData;
/** What is said of several runs goes together, and waits for so long at most, milliseconds: to wake the process costs as much as a run. */
const LONGEST = 2;
let marks = entered;
/** What the process is told next. */
const outbox: FromThread[] = [];
/** When what came from the process was begun with; there while it is under way. */
let since: number | undefined;
const flush = () => {
  if (outbox.length > 0) parentPort?.postMessage(outbox.splice(0));
};
const say = (message: FromThread) => {
  outbox.push(message);
  // Of a thread for one the process knows by nothing else which run uses it.
  if (marks === undefined || since === undefined || performance.now() - since > LONGEST) flush();
};

const sayReady = () => say({ type: 'ready', processorMs: processorTime() });

const here: Surroundings = { limits, say, wake: (run) => enter(run, 'deliver', ['timers']) };
/** The runs that have not ended, by their numbers. */
const running = new Map<number, State>();
/** Runs that wait for a sandbox, by their numbers: what begins them. */
const coming = new Map<number, (cell: Cell) => void>();
const pages = createPages();
/** Sandboxes that wait for a run. */
const free: Cell[] = [];
let isMaking = false;
const held = createHeld();

/** What sandboxes that share a thread hold together, bytes: one that needs more has it by itself. */
const MOST_TOGETHER = 128 * 1024 * 1024;

/** @param most bytes. */
const isCrowded = (most: number): boolean => marks !== undefined && held.bytes() > most;

async function make(): Promise<Cell> {
  await held.free();
  let cell: Cell | undefined;
  const sandbox = await createSandbox({
    wasmModule,
    memoryBytes: limits.memoryBytes,
    host: (name, args) => (cell?.state === undefined ? compute(name, args) : answer(cell.state, name, args)),
    mayGrow: (more) => !isCrowded(MOST_TOGETHER - more),
    isOver: () => cell?.state === undefined || isOver(cell.state),
    prepared,
    pages,
  });
  held.add(sandbox);
  cell = { sandbox, state: undefined };
  return cell;
}

/** Runs a part of the script, and ends the run when it has an outcome. */
function enter(own: State, name: 'start' | 'deliver', args: readonly Plain[]): void {
  if (running.get(own.run) !== own || own.outcome !== undefined) return;
  const { sandbox } = own.cell;
  own.entered = countProcessorTime();
  mark(own.run);
  try {
    const uncaught = sandbox.call(name, args);
    if (uncaught !== undefined) fail(own, scriptFailure(own, uncaught));
  } catch {
    // The engine itself gave up: no memory for what it needed, or too deep a recursion in it.
    fail(
      own,
      sandbox.isFull() ? tooMuchMemory(own) : { kind: 'crashed', message: 'it could not be run to its end' },
    );
  }
  mark(0);
  own.cpuMs += own.entered();
  own.entered = undefined;
  if (own.outcome === undefined && own.unanswered === 0 && own.timer === undefined) {
    fail(own, { kind: 'unanswered', message: 'it ended without calling its callback' });
  }
  if (own.outcome !== undefined) end(own, own.outcome);
}

/** Tells the process which run uses the thread now; 0: none. */
function mark(run: number): void {
  if (marks === undefined) return;
  Atomics.store(marks, 0, run);
  Atomics.add(marks, 1, 1);
}

/** Takes a run's sandbox from it. @returns whether others can have it: it is what it was, and there is room for it. */
function leave(own: State): boolean {
  clearTimeout(own.timer);
  running.delete(own.run);
  own.cell.state = undefined;
  const { sandbox } = own.cell;
  const mayStay = sandbox.heldBytes() === FIRST_BYTES || !isCrowded(MOST_TOGETHER / 2);
  const isKept = mayStay && sandbox.reset();
  if (!isKept) held.lose(sandbox);
  return isKept;
}

function end(own: State, reached: NonNullable<State['outcome']>): void {
  const { sandbox } = own.cell;
  const memoryBytes = sandbox.memoryBytes();
  // By itself it may have more.
  const outcome = marks !== undefined && sandbox.wasShort() ? { failure: tooMuchMemory(own) } : reached;
  const isReset = leave(own);
  const job = own.next.length > 0 && isPassing(own.passing, outcome.result) ? own.next[0] : undefined;
  if (isReset && job === undefined) free.push(own.cell);
  say({
    type: 'outcome',
    run: own.run,
    ...outcome,
    cpuMs: own.cpuMs,
    wallMs: performance.now() - own.began,
    memoryBytes,
    outputBytes: own.result + own.printed,
    requests: own.requests,
    next: job !== undefined ? 'run' : isReset ? 'wait' : 'make',
    processorMs: processorTime(),
  });
  if (job !== undefined)
    start(isReset ? own.cell : undefined, own.run + 1, job, own.next.slice(1), own.passing);
  // Where several run, nobody waits for it: it is made when it is needed.
  else if (!isReset && marks === undefined) void makeReady();
  if (coming.size > 0) void serve();
}

/** In a function: what a module itself has awaited, it holds for ever. */
async function makeReady(): Promise<void> {
  free.push(await make());
  sayReady();
}

function start(made: Cell | undefined, run: number, job: Job, next: readonly Job[], passing: Passing): void {
  const begin = (cell: Cell) => {
    const state = newState({ thread: here, run, cell, files: job.files, next, passing });
    cell.state = state;
    running.set(run, state);
    enter(state, 'start', [job.source, job.entry, job.args, job.globals, job.around ?? '']);
  };
  const cell = made ?? free.pop();
  if (cell === undefined) {
    coming.set(run, begin);
    void serve();
  } else begin(cell);
}

/** Gives sandboxes to runs that wait for one. They are made one after the other: most runs have ended before that. */
async function serve(): Promise<void> {
  for (const [run, begin] of coming) {
    const cell = free.pop();
    if (cell === undefined) break;
    coming.delete(run);
    begin(cell);
  }
  if (coming.size === 0 || isMaking) return;
  isMaking = true;
  const cell = await make();
  isMaking = false;
  free.push(cell);
  await serve();
}

/** Ends runs that nobody waits for any more: the process may not know yet which of them has begun. */
function drop({ run, last }: DropMessage): void {
  for (let each = run; each <= last; each++) {
    coming.delete(each);
    const own = running.get(each);
    if (own === undefined) continue;
    own.outcome = { failure: { kind: 'unanswered', message: 'nobody waits for it' } };
    if (leave(own)) free.push(own.cell);
  }
}

function hear(message: ToThread): void {
  switch (message.type) {
    case 'take':
      marks = message.entered;
      sayReady();
      break;
    case 'run': {
      const [job, ...next] = message.jobs;
      if (job !== undefined) start(undefined, message.run, job, next, message.passing);
      break;
    }
    case 'drop':
      drop(message);
      break;
    default:
      answered(message);
  }
}

function answered({ run, id, head, content }: AnswerMessage): void {
  const own = running.get(run);
  // Of a run that has ended there is nothing to do.
  if (own === undefined) return;
  own.unanswered--;
  enter(own, 'deliver', [id, head, content]);
}

parentPort?.on('message', (messages: readonly ToThread[]) => {
  since = performance.now();
  for (const message of messages) hear(message);
  since = undefined;
  flush();
});

await makeReady();
