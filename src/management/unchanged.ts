// A call that asks for what is so already changes nothing: no record is written, not even the date of its last change,
// and the log says nothing. Deploy tools send all that they have each time.

import { isDeepStrictEqual } from 'node:util';
import { collectionByName } from '../store/collection-by-name.ts';
import type { Collection, Store } from '../store/contract.ts';

/** A store for one call, and what the call did with it. */
interface WatchedStore {
  store: Store;
  /** Whether the call has looked at records to change them, and found all of them as they were to be. */
  isUnchanged(): boolean;
}

interface Dated {
  id: string;
  updated_at?: unknown;
}

/** Watches a store for the time of one call: updates that change nothing but a date give the record as it was. */
export function watchStore(store: Store): WatchedStore {
  const seen = { same: 0, other: 0 };
  /** What is written: the record as it is, where the new one is the same. */
  const judged = <T extends Dated>(current: T | undefined, next: T): T => {
    const isSame = current !== undefined && isDeepStrictEqual(undated(current), undated(next));
    seen[isSame ? 'same' : 'other'] += 1;
    return isSame ? current : next;
  };
  const other = <A extends unknown[], R>(write: (...given: A) => R) => {
    return (...given: A): R => {
      seen.other += 1;
      return write(...given);
    };
  };
  const watched = (collection: Collection<Dated>): Collection<Dated> => ({
    ...collection,
    update: (id, change) => collection.update(id, (current) => judged(current, change(current))),
    upsert: (id, change) => collection.upsert(id, (current) => judged(current, change(current))),
    put: async (record) => {
      const current = await collection.get(record.id);
      if (judged(current, record) === record) await collection.put(record);
    },
    insert: other(collection.insert),
    take: other(collection.take),
    delete: other(collection.delete),
    deleteBy: other(collection.deleteBy),
  });
  return {
    store: {
      ...store,
      // What it returns has the records that it was given.
      collection: (name) => watched(collectionByName<Dated>(store, name)) as never,
      batch: other(store.batch),
    },
    isUnchanged: () => seen.same > 0 && seen.other === 0,
  };
}

/** As it is stored, without when it was last written. */
function undated(record: Dated): object {
  const { updated_at: _, ...rest } = JSON.parse(JSON.stringify(record)) as Dated;
  return rest;
}
