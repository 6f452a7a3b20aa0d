// The processor time of threads.
import { Worker } from 'node:worker_threads';

/** Old versions of Node.js cannot tell the processor time of a thread. */
export const HAS_THREAD_CPU_USAGE = 'threadCpuUsage' in process && 'cpuUsage' in Worker.prototype;

/** Returns the processor time of another thread, milliseconds; 0 if it has ended. */
export const threadTime = (worker: Worker): Promise<number> =>
  worker.cpuUsage().then(
    ({ user, system }) => (user + system) / 1000,
    () => 0,
  );

/** Returns the processor time that this thread has used, milliseconds; elapsed time where Node.js cannot tell. */
export function processorTime(): number {
  if (!('threadCpuUsage' in process)) return performance.now();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * Starts to count the processor time of this thread. The system may count in steps of milliseconds, longer than a
 * script takes, so the count is at most the elapsed time.
 * @returns a function that returns the processor time since the start, milliseconds.
 */
export function countProcessorTime(): () => number {
  const [used, since] = [processorTime(), performance.now()];
  return () => Math.min(processorTime() - used, performance.now() - since);
}
