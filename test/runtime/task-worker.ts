// A thread for tests, with tasks that exceed each limit.
import { pbkdf2Sync } from 'node:crypto';
import { threadId } from 'node:worker_threads';
import { answerTasks } from '../../src/runtime/task-worker.ts';

export interface Task {
  kind: 'echo' | 'id' | 'loop' | 'fill' | 'throw' | 'exit' | 'wait' | 'native';
  value?: string;
  /** Set when the task has begun. */
  begun?: Int32Array;
}

answerTasks(({ kind, value, begun }: Task) => {
  if (begun !== undefined) Atomics.store(begun, 0, 1);
  if (kind === 'id') return String(threadId);
  if (kind === 'loop') for (;;);
  if (kind === 'throw') throw new Error(value);
  if (kind === 'exit') process.exit(0);
  if (kind === 'wait') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  // Nothing interrupts this, for a few seconds.
  if (kind === 'native') pbkdf2Sync('password', 'salt', 8_000_000, 32, 'sha512');
  const kept: string[] = [];
  while (kind === 'fill') kept.push(String(kept.length).padEnd(1_000, 'x'));
  return value;
});
