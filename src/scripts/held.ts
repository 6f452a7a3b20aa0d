// What the sandboxes of a thread hold of the memory of the process.
import { setImmediate } from 'node:timers/promises';
import { collectGarbage } from '../runtime/garbage.ts';
import { LITTLE_BYTES } from './limits.ts';
import type { Sandbox } from './sandbox.ts';

type Holding = Pick<Sandbox, 'heldBytes'>;

interface Held {
  add(sandbox: Holding): void;
  /** It is not to be used again. */
  lose(sandbox: Holding): void;
  /** What those hold that may be used, bytes. */
  bytes(): number;
  /** Frees what was lost, before another one is made. V8 does so when it next collects garbage, which nothing in the thread has it do. */
  free(): Promise<void>;
}

/** None yet. */
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
      // When nothing that runs now knows the last one any more.
      await setImmediate();
      lost = 0;
      collectGarbage('regular');
    },
  };
}
