// A store whose next batch or update of a kind waits while something else happens, as between two requests of a busy server.
import type { ArtifactRecord } from '../../src/records/state/engine.ts';
import type { Collection, Store, Write } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import type { StoreOptions } from '../../src/store/store-options.ts';

interface HeldStore {
  open(options: StoreOptions): Promise<Store>;
  /** Before the next batch with such a write, `meanwhile` happens. */
  beforeBatch(isMeant: (write: Write) => boolean, meanwhile: () => Promise<unknown>): void;
  /** Before the next update of such an artifact of the engine, `meanwhile` happens. */
  beforeUpdate(isMeant: (artifact: Artifact) => boolean, meanwhile: () => Promise<unknown>): void;
}

type Artifact = Pick<ArtifactRecord, 'model'>;

/** Returns a store that can be held. */
export function heldStore(): HeldStore {
  let next: { isMeant: (write: Write) => boolean; meanwhile: () => Promise<unknown> } | undefined;
  let nextUpdate: { isMeant: (artifact: Artifact) => boolean; meanwhile: () => Promise<unknown> } | undefined;
  const held = (artifacts: Collection<ArtifactRecord>): Collection<ArtifactRecord> => ({
    ...artifacts,
    update: async (id, change) => {
      const found = nextUpdate && (await artifacts.get(id));
      if (nextUpdate !== undefined && found !== undefined && nextUpdate.isMeant(found)) {
        const { meanwhile } = nextUpdate;
        nextUpdate = undefined;
        await meanwhile();
      }
      return artifacts.update(id, change);
    },
  });
  return {
    open: async (options) => {
      const store = await openStore(options);
      return {
        ...store,
        collection: (name) =>
          (name === 'artifacts' ? held(store.collection(name) as never) : store.collection(name)) as never,
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
    beforeUpdate: (isMeant, meanwhile) => {
      nextUpdate = { isMeant, meanwhile };
    },
  };
}
