/**
 * Counts what this thread uses of the processor from now on. The system may count in steps of milliseconds, which are more than a
 * script takes: it cannot be more than the time that has passed.
 * @returns what tells it, milliseconds.
 */
export function countProcessorTime(): () => number {
  const [used, since] = [processorTime(), performance.now()];
  return () => Math.min(processorTime() - used, performance.now() - since);
}

/** Time of the processor that this thread has used, milliseconds; where Node cannot tell, time. */
export function processorTime(): number {
  if (!('threadCpuUsage' in process)) return performance.now();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
