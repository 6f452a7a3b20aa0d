// How much memory this process may have.
import { totalmem } from 'node:os';

/** That of the machine, or of the container where it has less. Bytes. */
export function memoryOfMachine(): number {
  const allowed = process.constrainedMemory();
  // 0 where the system knows of no such limit.
  return allowed > 0 ? Math.min(allowed, totalmem()) : totalmem();
}
