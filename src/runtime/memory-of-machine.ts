// The memory that this process may use.
import { totalmem } from 'node:os';

/** Returns the memory of the machine, or of the container if that is less, in bytes. */
export function availableMemory(): number {
  const allowed = process.constrainedMemory();
  // 0 where the system knows of no such limit.
  return allowed > 0 ? Math.min(allowed, totalmem()) : totalmem();
}
