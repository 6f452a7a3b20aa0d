// Counts distinct texts with a HyperLogLog sketch (Flajolet et al. 2007), which takes a kilobyte for any number of
// them. It is nearly exact up to some hundreds, and about 3 percent off beyond. The sketches of two periods can be
// merged.
import { createHash } from 'node:crypto';

/** Number of registers, a power of two. */
const SIZE = 1024;
/** The paper's bias correction for that number of registers. */
const ALPHA = 0.7213 / (1 + 1.079 / SIZE);

export interface Distinct {
  add(text: string): void;
  /** Adds the texts of another sketch. */
  merge(other: Distinct): void;
  /** Returns the approximate number of distinct texts. */
  count(): number;
  registers: Uint8Array;
}

/** Returns a sketch. @param stored a stored one, from {@link storedSketch}; undefined for an empty one. */
export function distinct(stored?: string): Distinct {
  const registers = new Uint8Array(SIZE);
  if (stored !== undefined) registers.set(Buffer.from(stored, 'base64').subarray(0, SIZE));
  return {
    registers,
    add: (text) => {
      const hash = createHash('sha256').update(text).digest();
      const at = hash.readUInt16BE(0) % SIZE;
      const rank = Math.clz32(hash.readUInt32BE(2)) + 1;
      registers[at] = Math.max(registers[at] ?? 0, rank);
    },
    merge: (other) => {
      for (const [at, rank] of other.registers.entries()) registers[at] = Math.max(registers[at] ?? 0, rank);
    },
    count: () => Math.round(estimate(registers)),
  };
}

/** Returns a sketch as it is stored; undefined when it is empty. */
export function storedSketch({ registers }: Distinct): string | undefined {
  return registers.some((rank) => rank > 0) ? Buffer.from(registers).toString('base64') : undefined;
}

function estimate(registers: Uint8Array): number {
  let sum = 0;
  let empty = 0;
  for (const rank of registers) {
    sum += 2 ** -rank;
    if (rank === 0) empty += 1;
  }
  const raw = (ALPHA * SIZE * SIZE) / sum;
  // Small numbers are estimated from the registers that are still empty (linear counting).
  return raw <= 2.5 * SIZE && empty > 0 ? SIZE * Math.log(SIZE / empty) : raw;
}
