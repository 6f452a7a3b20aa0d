// A thread that runs scripts, each in a sandbox that shares nothing with those before or beside it: one after the
// other, or, in a shared thread, one while others wait. A sandbox is prepared while the thread is idle. This side
// limits processor time, memory, output and requests. The process limits elapsed time, and terminates a thread that
// does not answer.
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
/**
 * In a shared thread, messages are sent together, at the latest after so many milliseconds: waking the process costs as
 * much as a run.
 */
const LONGEST = 2;
let marks = entered;
/** The messages to send next. */
const outbox: FromThread[] = [];
/** When the handling of the process's messages began; undefined while there are none. */
let since: number | undefined;
const flush = () => {
  if (outbox.length > 0) parentPort?.postMessage(outbox.splice(0));
};
const send = (message: FromThread) => {
  outbox.push(message);
  // In a thread for one script the messages are the only way for the process to learn of its state.
  if (marks === undefined || since === undefined || performance.now() - since > LONGEST) flush();
};

const sendReady = () => send({ type: 'ready', processorMs: processorTime() });

const here: Surroundings = { limits, send, wake: (run) => enter(run, 'deliver', ['timers']) };
/** The runs that have not ended, by number. */
const running = new Map<number, State>();
/** Runs that wait for a sandbox, by number: the functions that start them. */
const coming = new Map<number, (cell: Cell) => void>();
const pages = createPages();
/** Sandboxes that wait for a run. */
const free: Cell[] = [];
let isMaking = false;
const held = createHeld();

/**
 * What the sandboxes of a shared thread may hold together, bytes. A script that needs more runs in a thread of its own.
 */
const MOST_TOGETHER = 128 * 1024 * 1024;

/** Reports whether the sandboxes of a shared thread hold too much. @param most bytes. */
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

/** Calls into a run's sandbox, and ends the run when it has an outcome. */
function enter(own: State, name: 'start' | 'deliver', args: readonly Plain[]): void {
  if (running.get(own.run) !== own || own.outcome !== undefined) return;
  const { sandbox } = own.cell;
  own.entered = countProcessorTime();
  mark(own.run);
  try {
    const uncaught = sandbox.call(name, args);
    if (uncaught !== undefined) fail(own, scriptFailure(own, uncaught));
  } catch {
    // The engine itself failed: it had no memory left, or recursed too deep.
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

/**
 * Removes a run from its sandbox.
 * @returns whether the sandbox can be used again: its memory was restored, and there is room for it.
 */
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
  // In a thread of its own the script may have more memory, so it must run again there.
  const outcome = marks !== undefined && sandbox.wasShort() ? { failure: tooMuchMemory(own) } : reached;
  const isReset = leave(own);
  const job = own.next.length > 0 && isPassing(own.passing, outcome.result) ? own.next[0] : undefined;
  if (isReset && job === undefined) free.push(own.cell);
  send({
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
  // In a shared thread the next sandbox is made when it is needed.
  else if (!isReset && marks === undefined) void makeReady();
  if (coming.size > 0) void serve();
}

/** A function, because a module holds what its top level has awaited for ever. */
async function makeReady(): Promise<void> {
  free.push(await make());
  sendReady();
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

/**
 * Gives sandboxes to the runs that wait for one. They are made one after the other, because most runs end before the
 * next is made.
 */
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

/** Ends runs that nobody waits for any more. The process may not know yet which of them has begun. */
function drop({ run, last }: DropMessage): void {
  for (let each = run; each <= last; each++) {
    coming.delete(each);
    const own = running.get(each);
    if (own === undefined) continue;
    own.outcome = { failure: { kind: 'unanswered', message: 'nobody waits for it' } };
    if (leave(own)) free.push(own.cell);
  }
}

function receive(message: ToThread): void {
  switch (message.type) {
    case 'take':
      marks = message.entered;
      sendReady();
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
  // The run has ended already.
  if (own === undefined) return;
  own.unanswered--;
  enter(own, 'deliver', [id, head, content]);
}

parentPort?.on('message', (messages: readonly ToThread[]) => {
  since = performance.now();
  for (const message of messages) receive(message);
  since = undefined;
  flush();
});

await makeReady();
