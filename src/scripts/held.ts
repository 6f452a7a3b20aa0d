// Counts the memory that the sandboxes of a thread hold.
import { setImmediate } from 'node:timers/promises';
import { collectGarbage } from '../runtime/garbage.ts';
import { LITTLE_BYTES } from './limits.ts';
import type { Sandbox } from './sandbox.ts';

type Holding = Pick<Sandbox, 'heldBytes'>;

interface Held {
  add(sandbox: Holding): void;
  /** Counts a sandbox as discarded. */
  lose(sandbox: Holding): void;
  /** What the sandboxes in use hold, bytes. */
  bytes(): number;
  /**
   * Frees discarded sandboxes before another one is made. V8 would free them at its next garbage collection, which
   * nothing in the thread may trigger.
   */
  free(): Promise<void>;
}

/** Makes the count, of no sandboxes at first. */
export function createHeld(): Held {
  const all = new Set<Holding>();
  let lost = 0;
  return {
    add: (sandbox) => void all.add(sandbox),
    lose: (sandbox) => {
      all.delete(sandbox);
      lost += sandbox.heldBytes();
    },
    bytes: () => [...all].reduce((sum, sandbox) => sum + sandbox.heldBytes(), 0),
    free: async () => {
      if (lost <= LITTLE_BYTES) return;
      // By then nothing on the stack refers to the last sandbox any more.
      await setImmediate();
      lost = 0;
      collectGarbage('regular');
    },
  };
}
