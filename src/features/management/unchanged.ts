// Detects calls that change nothing, because the records have the requested values already. Such a call writes no
// record, not even a new `updated_at`, and is not logged. Deploy tools send their whole configuration at each run.

import { isDeepStrictEqual } from 'node:util';
import { collectionByName } from '../../store/collection-by-name.ts';
import type { Collection, Store } from '../../store/contract.ts';

/** The store that a call is given, and whether the call changed anything. */
interface WatchedStore {
  store: Store;
  /** Whether the call tried to change records and each of them had the requested values already. */
  isUnchanged(): boolean;
}

interface Dated {
  id: string;
  updated_at?: unknown;
}

/** Wraps a store for one call. An update that would only change `updated_at` leaves the record unchanged. */
export function watchStore(store: Store): WatchedStore {
  const counts = { unchanged: 0, changed: 0 };
  /** Returns the record to write: the current one if the new one is equal to it. */
  const recordToWrite = <T extends Dated>(current: T | undefined, next: T): T => {
    const isSame = current !== undefined && isDeepStrictEqual(withoutDate(current), withoutDate(next));
    counts[isSame ? 'unchanged' : 'changed'] += 1;
    return isSame ? current : next;
  };
  const countingChange = <A extends unknown[], R>(write: (...args: A) => R) => {
    return (...args: A): R => {
      counts.changed += 1;
      return write(...args);
    };
  };
  const watchedCollection = (collection: Collection<Dated>): Collection<Dated> => ({
    ...collection,
    update: (id, change) => collection.update(id, (current) => recordToWrite(current, change(current))),
    upsert: (id, change) => collection.upsert(id, (current) => recordToWrite(current, change(current))),
    put: async (record) => {
      const current = await collection.get(record.id);
      if (recordToWrite(current, record) === record) await collection.put(record);
    },
    insert: countingChange(collection.insert),
    take: countingChange(collection.take),
    delete: countingChange(collection.delete),
    deleteBy: countingChange(collection.deleteBy),
  });
  return {
    store: {
      ...store,
      // The cast restores the record type of the collection.
      collection: (name) => watchedCollection(collectionByName<Dated>(store, name)) as never,
      batch: countingChange(store.batch),
    },
    isUnchanged: () => counts.unchanged > 0 && counts.changed === 0,
  };
}

/** Returns a record as it would be stored, without `updated_at`. */
function withoutDate(record: Dated): object {
  const { updated_at: _, ...rest } = JSON.parse(JSON.stringify(record)) as Dated;
  return rest;
}
