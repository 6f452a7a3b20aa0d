// The processor time of a thread, seen from this one.
import { Worker } from 'node:worker_threads';

/** Old versions of Node.js cannot tell the processor time of a thread. */
export const HAS_THREAD_CPU_USAGE = 'threadCpuUsage' in process && 'cpuUsage' in Worker.prototype;

/** Returns the processor time of a thread, milliseconds; 0 if it has ended. */
export const threadTime = (worker: Worker): Promise<number> =>
  worker.cpuUsage().then(
    ({ user, system }) => (user + system) / 1000,
    () => 0,
  );
