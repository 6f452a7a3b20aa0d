// A store whose next batch of a kind waits while something else happens, as between two requests of a busy server.
import type { Store, Write } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import type { StoreOptions } from '../../src/store/store-options.ts';

interface HeldStore {
  open(options: StoreOptions): Promise<Store>;
  /** Before the next batch with such a write, `meanwhile` happens. */
  beforeBatch(isMeant: (write: Write) => boolean, meanwhile: () => Promise<unknown>): void;
}

/** Returns a store that can be held. */
export function heldStore(): HeldStore {
  let next: { isMeant: (write: Write) => boolean; meanwhile: () => Promise<unknown> } | undefined;
  return {
    open: async (options) => {
      const store = await openStore(options);
      return {
        ...store,
        batch: async (writes) => {
          if (next !== undefined && writes.some(next.isMeant)) {
            const { meanwhile } = next;
            next = undefined;
            await meanwhile();
          }
          return store.batch(writes);
        },
      };
    },
    beforeBatch: (isMeant, meanwhile) => {
      next = { isMeant, meanwhile };
    },
  };
}
