// A thread that does one task after the other, for work whose cost depends on what others wrote. Tasks have limits of
// time and memory; one that exceeds them ends with the thread, and the next task gets another thread. Those who ask take
// turns, as in fair-queue.ts.
import type { ResourceLimits, Worker } from 'node:worker_threads';
import { deadlineIn, doneBy } from './deadline.ts';
import { createFairWork } from './fair-queue.ts';
import type { Origin } from './shares.ts';
import type { FromTaskThread } from './task-worker.ts';
import { endWorker, startWorker, watchOver } from './worker-thread.ts';

/**
 * Why a task has no answer. `busy`: too many wait, it has waited too long, or the server stops; `unwanted`: its turn came
 * too late; `overused`: it exceeded its time or memory; `failed`: its thread threw an error, or could not be started.
 */
export type TaskFailure = 'busy' | 'unwanted' | 'overused' | 'failed';

export type TaskOutcome<Answer> =
  | { answer: Answer; failure?: undefined }
  | {
      failure: TaskFailure;
      cause?: unknown;
    };

interface Turn {
  /** Whose turn it is, where that is not whoever makes the request. */
  origin?: Origin;
  /** Asked when its turn comes; `false` leaves it undone. */
  isWanted?(): boolean;
}

export interface TaskThread<Task, Answer> {
  /** Does a task. Both it and its answer are copied. Never rejects. */
  run(task: Task, turn?: Turn): Promise<TaskOutcome<Answer>>;
  /** Ends the thread, but does not wait long for one that nothing can interrupt. */
  close(): Promise<void>;
  /** Whether a thread was told to end and has not ended: the end of the process would wait for it. */
  isHeldUp(): boolean;
}

interface TaskThreadOptions {
  name: string;
  /** The module of the thread, which calls `answerTasks`. */
  module: URL;
  memory: ResourceLimits;
  /** Processor time of a task, and its elapsed time, milliseconds. */
  maxCpuMs: number;
  maxElapsedMs: number;
  /** How many tasks may wait for known callers, and as many for others; and how long, milliseconds. */
  maxWaiting: number;
  maxWaitMs: number;
  /** How long the thread is kept without a task, milliseconds. */
  idleMs: number;
}

/** How long a thread may take to start, milliseconds. On a busy machine it takes seconds. */
const TIMEOUT_START_MS = 30_000;
/** How many threads may not have ended, so that they are replaced, but not without end. */
const MAX_ENDING = 3;

/** Makes a task thread. Nothing is started before the first task. */
export function createTaskThread<Task, Answer>(options: TaskThreadOptions): TaskThread<Task, Answer> {
  const { maxWaiting, maxWaitMs, idleMs } = options;
  const refusal = () => new Error('too many tasks wait');
  const turns = createFairWork({ concurrency: 1, maxWaiting, maxWaitMs, refusal });
  const ending = new Set<Worker>();
  let thread: Thread<Task, Answer> | undefined;
  let idle: NodeJS.Timeout | undefined;
  let isClosed = false;
  const serve = async (task: Task, isWanted: () => boolean): Promise<TaskOutcome<Answer>> => {
    if (!isWanted()) return { failure: 'unwanted' };
    if (thread?.hasEnded() !== false) thread = undefined;
    if (isClosed || (thread === undefined && ending.size >= MAX_ENDING)) return { failure: 'busy' };
    clearTimeout(idle);
    thread ??= startThread<Task, Answer>(options, ending);
    const outcome = await thread.run(task);
    idle = setTimeout(() => void thread?.end(), idleMs).unref();
    return outcome;
  };
  return {
    run: (task, { origin, isWanted = () => true } = {}) =>
      turns.run(() => serve(task, isWanted), origin).catch(() => ({ failure: 'busy' })),
    close: async () => {
      isClosed = true;
      clearTimeout(idle);
      await thread?.end();
    },
    isHeldUp: () => ending.size > 0,
  };
}

interface Thread<Task, Answer> {
  run(task: Task): Promise<TaskOutcome<Answer>>;
  hasEnded(): boolean;
  end(): Promise<void>;
}

function startThread<Task, Answer>(options: TaskThreadOptions, ending: Set<Worker>): Thread<Task, Answer> {
  const worker = startWorker(options);
  const over = Promise.withResolvers<TaskOutcome<Answer>>();
  let hasEnded = false;
  let used = 0;
  const endWith = (failure: TaskFailure, cause?: unknown) => {
    hasEnded = true;
    over.resolve({ failure, cause });
  };
  const end = async (failure: TaskFailure = 'busy') => {
    endWith(failure);
    await endWorker(worker, ending);
  };
  const next = () =>
    new Promise<FromTaskThread<Answer>>((resolve) => {
      worker.once('message', (message: FromTaskThread<Answer>) => {
        used = message.processorMs;
        resolve(message);
      });
    });
  worker.on('error', (thrown: Error & { code?: string }) =>
    endWith(thrown.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'overused' : 'failed', thrown),
  );
  worker.on('exit', () => endWith('failed'));
  const ready = next();
  /** Waits for an answer, within the limits of a task. */
  const answered = async (answer: Promise<FromTaskThread<Answer>>): Promise<TaskOutcome<Answer>> => {
    const tooMuch = () => void end('overused');
    const timer = setTimeout(tooMuch, options.maxElapsedMs);
    const stopWatch = watchOver({ worker, used, most: options.maxCpuMs, tooMuch });
    const outcome = await Promise.race([
      over.promise,
      answer.then((one) => ({ answer: one.answer as Answer })),
    ]);
    clearTimeout(timer);
    stopWatch();
    return outcome;
  };
  return {
    end,
    hasEnded: () => hasEnded,
    run: async (task) => {
      worker.ref();
      const hasStarted = await doneBy(deadlineIn(TIMEOUT_START_MS), Promise.race([ready, over.promise]));
      if (!hasStarted) void end('failed');
      if (hasEnded) return over.promise;
      const answer = next();
      worker.postMessage(task);
      const outcome = await answered(answer);
      worker.unref();
      return outcome;
    },
  };
}
