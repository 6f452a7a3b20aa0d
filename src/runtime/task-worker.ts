// The side of a task thread (task-thread.ts) that is in the thread.
import { parentPort } from 'node:worker_threads';
import { processorTime } from './thread-time.ts';

/** What the thread says: that it is ready, or the answer to the task. */
export type FromTaskThread<Answer> = {
  /** What the thread has used of the processor so far, milliseconds. */
  processorMs: number;
  answer?: Answer;
};

/** @param answerTo may throw, which ends the thread. */
export function answerTasks<Task, Answer>(answerTo: (task: Task) => Answer): void {
  const send = (message: { answer?: Answer }) =>
    parentPort?.postMessage({ ...message, processorMs: processorTime() } satisfies FromTaskThread<Answer>);
  parentPort?.on('message', (task: Task) => send({ answer: answerTo(task) }));
  send({});
}
