// A thread that runs scripts, each in a sandbox that shares nothing with those before or beside it: one after the
// other, or, in a shared thread, one while others wait. A sandbox is prepared while the thread is idle. This side
// limits processor time, memory, output and requests. The process limits elapsed time, and terminates a thread that
// does not answer.

import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { countProcessorTime, processorTime } from '../../runtime/thread-time.ts';
import { compute, type Plain } from './host-functions.ts';
import { INITIAL_MEMORY_BYTES, MAX_REUSED_BYTES } from './limits.ts';
import {
  answer,
  type Cell,
  fail,
  isOver,
  newState,
  type RunState,
  type RunThread,
  scriptFailure,
  tooMuchMemory,
} from './run.ts';
import { createSandbox, type Sandbox } from './sandbox.ts';
import type {
  AnswerMessage,
  ContinueCondition,
  DropMessage,
  FromThread,
  Job,
  ThreadData,
  ToThread,
} from './scripts-messages.ts';
import { createPages } from './scripts-snapshot.ts';

// Counts the memory that the sandboxes of a thread hold.

type MemoryHolder = Pick<Sandbox, 'heldBytes'>;

interface SandboxMemoryCount {
  add(sandbox: MemoryHolder): void;
  lose(sandbox: MemoryHolder): void;
  /** What the sandboxes in use hold, bytes. */
  bytes(): number;
  /**
   * Frees discarded sandboxes before another one is made. V8 would free them at its next garbage collection, which
   * nothing in the thread may trigger.
   */
  free(): Promise<void>;
}

/** Collects the garbage of this thread; V8 does so only as new objects are made. */
function collectGarbage(): void {
  // V8's own function, which it adds to contexts that are made while this flag is set.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => void;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'regular' });
}

/** Makes the count, of no sandboxes at first. */
function countSandboxMemory(): SandboxMemoryCount {
  const all = new Set<MemoryHolder>();
  let discardedBytes = 0;
  return {
    add: (sandbox) => void all.add(sandbox),
    lose: (sandbox) => {
      all.delete(sandbox);
      discardedBytes += sandbox.heldBytes();
    },
    bytes: () => [...all].reduce((sum, sandbox) => sum + sandbox.heldBytes(), 0),
    free: async () => {
      if (discardedBytes <= MAX_REUSED_BYTES) return;
      // By then nothing on the stack refers to the last sandbox any more.
      await setImmediate();
      discardedBytes = 0;
      collectGarbage();
    },
  };
}

const { wasmModule, limits, prepared, entered } = workerData as ThreadData;
/**
 * In a shared thread, messages are sent together, at the latest after so many milliseconds: waking the process costs as
 * much as a run.
 */
const MAX_DELAY_MS = 2;
let turnMarker = entered;
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
  if (turnMarker === undefined || since === undefined || performance.now() - since > MAX_DELAY_MS) flush();
};

const sendReady = () => send({ type: 'ready', processorMs: processorTime() });

const thread: RunThread = { limits, send, wake: (run) => enter(run, 'deliver', ['timers']) };
/** The runs that have not ended, by number. */
const running = new Map<number, RunState>();
/** Runs that wait for a sandbox, by number: the functions that start them. */
const pending = new Map<number, (cell: Cell) => void>();
const pages = createPages();
/** Sandboxes that wait for a run. */
const free: Cell[] = [];
let isMaking = false;
const memoryCount = countSandboxMemory();

/**
 * What the sandboxes of a shared thread may hold together, bytes. A script that needs more runs in a thread of its own.
 */
const MAX_SHARED_BYTES = 128 * 1024 * 1024;

/** Reports whether the sandboxes of a shared thread hold too much. @param most bytes. */
const isCrowded = (most: number): boolean => turnMarker !== undefined && memoryCount.bytes() > most;

async function make(): Promise<Cell> {
  await memoryCount.free();
  let cell: Cell | undefined;
  const sandbox = await createSandbox({
    wasmModule,
    memoryBytes: limits.memoryBytes,
    host: (name, args) => (cell?.state === undefined ? compute(name, args) : answer(cell.state, name, args)),
    mayGrow: (more) => !isCrowded(MAX_SHARED_BYTES - more),
    isOver: () => cell?.state === undefined || isOver(cell.state),
    prepared,
    pages,
  });
  memoryCount.add(sandbox);
  cell = { sandbox, state: undefined };
  return cell;
}

/** Calls into a run's sandbox, and ends the run when it has an outcome. */
function enter(state: RunState, name: 'start' | 'deliver', args: readonly Plain[]): void {
  if (running.get(state.run) !== state || state.outcome !== undefined) return;
  const { sandbox } = state.cell;
  state.entered = countProcessorTime();
  mark(state.run);
  try {
    const uncaught = sandbox.call(name, args);
    if (uncaught !== undefined) fail(state, scriptFailure(state, uncaught));
  } catch {
    // The engine itself failed: it had no memory left, or recursed too deep.
    fail(
      state,
      sandbox.isFull()
        ? tooMuchMemory(state)
        : { kind: 'crashed', message: 'it could not be run to its end' },
    );
  }
  mark(0);
  state.cpuMs += state.entered();
  state.entered = undefined;
  if (state.outcome === undefined && state.unanswered === 0 && state.timer === undefined) {
    fail(state, { kind: 'unanswered', message: 'it ended without calling its callback' });
  }
  if (state.outcome !== undefined) end(state, state.outcome);
}

/** Tells the process which run uses the thread now; 0: none. */
function mark(run: number): void {
  if (turnMarker === undefined) return;
  Atomics.store(turnMarker, 0, run);
  Atomics.add(turnMarker, 1, 1);
}

/**
 * Removes a run from its sandbox.
 * @returns whether the sandbox can be used again: its memory was restored, and there is room for it.
 */
function leave(state: RunState): boolean {
  clearTimeout(state.timer);
  running.delete(state.run);
  state.cell.state = undefined;
  const { sandbox } = state.cell;
  const mayStay = sandbox.heldBytes() === INITIAL_MEMORY_BYTES || !isCrowded(MAX_SHARED_BYTES / 2);
  const isKept = mayStay && sandbox.reset();
  if (!isKept) memoryCount.lose(sandbox);
  return isKept;
}

function end(state: RunState, finalOutcome: NonNullable<RunState['outcome']>): void {
  const { sandbox } = state.cell;
  const memoryBytes = sandbox.memoryBytes();
  // In a thread of its own the script may have more memory, so it must run again there.
  const outcome =
    turnMarker !== undefined && sandbox.wasShort() ? { failure: tooMuchMemory(state) } : finalOutcome;
  const isReset = leave(state);
  const job =
    state.next.length > 0 && meetsContinueCondition(state.passing, outcome.result)
      ? state.next[0]
      : undefined;
  if (isReset && job === undefined) free.push(state.cell);
  send({
    type: 'outcome',
    run: state.run,
    ...outcome,
    cpuMs: state.cpuMs,
    wallMs: performance.now() - state.began,
    memoryBytes,
    outputBytes: state.result + state.printed,
    requests: state.requests,
    next: job !== undefined ? 'run' : isReset ? 'wait' : 'make',
    processorMs: processorTime(),
  });
  if (job !== undefined)
    start(isReset ? state.cell : undefined, state.run + 1, job, state.next.slice(1), state.passing);
  // In a shared thread the next sandbox is made when it is needed.
  else if (!isReset && turnMarker === undefined) void makeReady();
  if (pending.size > 0) void serve();
}

/** A function, because a module holds what its top level has awaited for ever. */
async function makeReady(): Promise<void> {
  free.push(await make());
  sendReady();
}

function start(
  readyCell: Cell | undefined,
  run: number,
  job: Job,
  next: readonly Job[],
  passing: ContinueCondition,
): void {
  const startIn = (cell: Cell) => {
    const state = newState({ thread, run, cell, files: job.files, next, passing });
    cell.state = state;
    running.set(run, state);
    enter(state, 'start', [job.source, job.entry, job.args, job.globals, job.around ?? '']);
  };
  const cell = readyCell ?? free.pop();
  if (cell === undefined) {
    pending.set(run, startIn);
    void serve();
  } else startIn(cell);
}

/**
 * Gives sandboxes to the runs that wait for one. They are made one after the other, because most runs end before the
 * next is made.
 */
async function serve(): Promise<void> {
  for (const [run, startIn] of pending) {
    const cell = free.pop();
    if (cell === undefined) break;
    pending.delete(run);
    startIn(cell);
  }
  if (pending.size === 0 || isMaking) return;
  isMaking = true;
  const cell = await make();
  isMaking = false;
  free.push(cell);
  await serve();
}

/** Ends runs that nobody waits for any more. The process may not know yet which of them has begun. */
function drop({ run, last }: DropMessage): void {
  for (let each = run; each <= last; each++) {
    pending.delete(each);
    const state = running.get(each);
    if (state === undefined) continue;
    state.outcome = { failure: { kind: 'unanswered', message: 'nobody waits for it' } };
    if (leave(state)) free.push(state.cell);
  }
}

function receive(message: ToThread): void {
  switch (message.type) {
    case 'take':
      turnMarker = message.entered;
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
      deliverAnswer(message);
  }
}

function deliverAnswer({ run, id, head, content }: AnswerMessage): void {
  const state = running.get(run);
  // The run has ended already.
  if (state === undefined) return;
  state.unanswered--;
  enter(state, 'deliver', [id, head, content]);
}

parentPort?.on('message', (messages: readonly ToThread[]) => {
  since = performance.now();
  for (const message of messages) receive(message);
  since = undefined;
  flush();
});

await makeReady();

// Decides from a script's result whether the next script may begin.

/**
 * Reports whether a result is a list of the expected commands. It is JSON, unless the script has replaced the function
 * that writes it.
 */
function meetsContinueCondition({ methods, most }: ContinueCondition, result: string | undefined): boolean {
  let commands: unknown;
  try {
    commands = JSON.parse(result ?? 'null');
  } catch {
    return false;
  }
  const isAllowed = (one: Partial<{ method: string; args: unknown }> | null) =>
    methods.includes(one?.method ?? '') && Array.isArray(one?.args);
  return Array.isArray(commands) && commands.length <= most && commands.every(isAllowed);
}
