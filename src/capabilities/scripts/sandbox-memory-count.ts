// Counts the memory that the sandboxes of a thread hold.
import { setImmediate } from 'node:timers/promises';
import { collectGarbage } from '../../runtime/garbage.ts';
import { MAX_REUSED_BYTES } from './limits.ts';
import type { Sandbox } from './sandbox.ts';

type MemoryHolder = Pick<Sandbox, 'heldBytes'>;

interface SandboxMemoryCount {
  add(sandbox: MemoryHolder): void;
  /** Counts a sandbox as discarded. */
  lose(sandbox: MemoryHolder): void;
  /** What the sandboxes in use hold, bytes. */
  bytes(): number;
  /**
   * Frees discarded sandboxes before another one is made. V8 would free them at its next garbage collection, which
   * nothing in the thread may trigger.
   */
  free(): Promise<void>;
}

/** Makes the count, of no sandboxes at first. */
export function countSandboxMemory(): SandboxMemoryCount {
  const all = new Set<MemoryHolder>();
  let discardedBytes = 0;
  return {
    add: (sandbox) => void all.add(sandbox),
    lose: (sandbox) => {
      all.delete(sandbox);
      discardedBytes += sandbox.heldBytes();
    },
    bytes: () => [...all].reduce((sum, sandbox) => sum + sandbox.heldBytes(), 0),
    free: async () => {
      if (discardedBytes <= MAX_REUSED_BYTES) return;
      // By then nothing on the stack refers to the last sandbox any more.
      await setImmediate();
      discardedBytes = 0;
      collectGarbage('regular');
    },
  };
}
