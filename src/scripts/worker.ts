// A thread that runs scripts, each in a sandbox that knows nothing of those before, nor of those beside it: one after the other,
// or, where the process asks for it, one while others wait. A sandbox is made ready while the thread waits. What a
// script may use of processor, memory, output and requests is counted here; time is counted by the process, which also ends a
// thread that does not answer any more.
import { parentPort, workerData } from 'node:worker_threads';
import { compute, type Plain } from './host-functions.ts';
import type { DropMessage, FromThread, Job, Passing, ThreadData, ToThread } from './messages.ts';
import { isPassing } from './passing.ts';
import { processorTime } from './processor-time.ts';
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
let marks = entered;
const say = (message: FromThread) => parentPort?.postMessage(message);

const sayReady = () => say({ type: 'ready', processorMs: processorTime() });

const here: Surroundings = { limits, say, wake: (run) => enter(run, 'deliver', ['timers']) };
/** The runs that have not ended, by their numbers. */
const running = new Map<number, State>();
/** What is to run when its sandbox is made. */
const coming = new Map<number, Job>();
const pages = createPages();
/** Sandboxes that wait for a run. */
const free: Cell[] = [];

async function make(): Promise<Cell> {
  let cell: Cell | undefined;
  const sandbox = await createSandbox({
    wasmModule,
    memoryBytes: limits.memoryBytes,
    host: (name, args) => (cell?.state === undefined ? compute(name, args) : answer(cell.state, name, args)),
    isOver: () => cell?.state === undefined || isOver(cell.state),
    prepared,
    pages,
  });
  cell = { sandbox, state: undefined };
  return cell;
}

/** Runs a part of the script, and ends the run when it has an outcome. */
function enter(own: State, name: 'start' | 'deliver', args: readonly Plain[]): void {
  if (running.get(own.run) !== own || own.outcome !== undefined) return;
  const { sandbox } = own.cell;
  own.entered = processorTime();
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
  own.cpuMs += processorTime() - own.entered;
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

/** Takes a run's sandbox from it. @returns whether others can have it: it is what it was. */
function leave(own: State): boolean {
  clearTimeout(own.timer);
  running.delete(own.run);
  own.cell.state = undefined;
  return own.cell.sandbox.reset();
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
    memoryBytes,
    outputBytes: own.result + own.printed,
    requests: own.requests,
    next: job !== undefined ? 'run' : isReset ? 'wait' : 'make',
    processorMs: processorTime(),
  });
  void goOn(own, job, isReset);
}

async function goOn(
  { run, cell, next, passing }: State,
  job: Job | undefined,
  isReset: boolean,
): Promise<void> {
  if (job !== undefined) await start(isReset ? cell : undefined, run + 1, job, next.slice(1), passing);
  // Where several run, nobody waits for it: it is made when it is needed.
  else if (!isReset && marks === undefined) {
    free.push(await make());
    sayReady();
  }
}

async function start(
  made: Cell | undefined,
  run: number,
  job: Job,
  next: readonly Job[],
  passing: Passing,
): Promise<void> {
  coming.set(run, job);
  const cell = made ?? (await make());
  if (coming.get(run) !== job) return void free.push(cell);
  coming.delete(run);
  const state = newState({ thread: here, run, cell, files: job.files, next, passing });
  cell.state = state;
  running.set(run, state);
  enter(state, 'start', [job.source, job.entry, job.args, job.globals, job.around ?? '']);
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

parentPort?.on('message', async (message: ToThread) => {
  if (message.type === 'take') {
    marks = message.entered;
    return sayReady();
  }
  if (message.type === 'run') {
    const [job, ...next] = message.jobs;
    return job && (await start(free.pop(), message.run, job, next, message.passing));
  }
  if (message.type === 'drop') return drop(message);
  const own = running.get(message.run);
  // Of a run that has ended there is nothing to do.
  if (own === undefined) return;
  own.unanswered--;
  enter(own, 'deliver', [message.id, message.head, message.content]);
});

free.push(await make());
sayReady();
