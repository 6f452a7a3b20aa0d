// A store that counts what is written to it, to see that a refused request has written nothing.
import { isDeepStrictEqual } from 'node:util';
import type { Stored } from '../../src/records/base/record.ts';
import type { Collection, Store } from '../../src/store/contract.ts';
import { collectionByName } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';

/** Collections that are written whatever the answer is: logs, counts, and what runs in the background. */
const APART: ReadonlySet<string> = new Set(
  'logs logCounts logStreamPositions limits failures tries leases deliveries jobs jobParts'.split(' '),
);

/** Returns an `open` for a test server, and the collections that were written since the last call of `written`. */
export function countedWrites(): { open: typeof openStore; written(): string[] } {
  let names: string[] = [];
  const note = (name: string) => {
    if (!APART.has(name)) names.push(name);
  };
  const counted = (name: string, collection: Collection<Stored>): Collection<Stored> => {
    const changed = <T extends Stored | undefined>(before: unknown, after: T): T => {
      if (!isDeepStrictEqual(before, after)) note(name);
      return after;
    };
    const noted =
      <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        const result = await write(...args);
        if (result !== undefined && result !== false && result !== 0) note(name);
        return result;
      };
    return {
      ...collection,
      insert: async (record) => {
        await collection.insert(record);
        note(name);
      },
      put: async (record) => {
        changed(await collection.get(record.id), record as Stored);
        await collection.put(record);
      },
      update: (id, change) => collection.update(id, (current) => changed(current, change(current) as Stored)),
      upsert: (id, change) => collection.upsert(id, (current) => changed(current, change(current) as Stored)),
      take: noted(collection.take),
      delete: noted(collection.delete),
      deleteBy: noted(collection.deleteBy),
    };
  };
  const wrapped = (store: Store): Store => ({
    ...store,
    // The cast restores the record type of the collection.
    collection: (name) => counted(name, collectionByName<Stored>(store, name)) as never,
    batch: async (writes) => {
      await store.batch(writes);
      for (const { collection } of writes) note(collection);
    },
  });
  return {
    open: async (...args: Parameters<typeof openStore>) => wrapped(await openStore(...args)) as never,
    written: () => {
      const before = names;
      names = [];
      return before;
    },
  };
}
