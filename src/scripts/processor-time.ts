/** Time of the processor that this thread has used, milliseconds; where Node cannot tell, time. */
export function processorTime(): number {
  if (!('threadCpuUsage' in process)) return performance.now();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
