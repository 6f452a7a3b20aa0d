// The revision of the configuration: a counter that rises with every write to a collection that is read through a
// cache.
import type { Stored } from '../records/base/record.ts';
import type { Collection } from './contract.ts';

/** Returns the collection with `count` called at each write, before the write resolves. */
export function countWrites<T extends Stored>(collection: Collection<T>, count: () => void): Collection<T> {
  const counted = async <R>(write: Promise<R>): Promise<R> => {
    // A failed write is counted, too, because it may have been made.
    try {
      return await write;
    } finally {
      count();
    }
  };
  return {
    ...collection,
    insert: (record) => counted(collection.insert(record)),
    put: (record) => counted(collection.put(record)),
    update: (id, change) => counted(collection.update(id, change)),
    upsert: (id, change) => counted(collection.upsert(id, change)),
    take: (id) => counted(collection.take(id)),
    delete: (id) => counted(collection.delete(id)),
    deleteBy: (index, value) => counted(collection.deleteBy(index, value)),
  };
}
