// Access to collections whose names are known only at run time.
import type { CollectionName } from '../records/collections.ts';
import type { Stored } from '../records/record.ts';
import type { Collection, Store } from './contract.ts';

/**
 * Returns the collection with a name that is only known at run time. The caller must write only records that it read
 * from this collection, or from the same collection of another store.
 */
export function collectionByName<Record extends Stored = Stored>(
  store: Store,
  name: CollectionName,
): Collection<Record> {
  // The type of a collection whose name is one of several accepts only what all of them accept, which is nothing.
  return store.collection(name) as unknown as Collection<Record>;
}

/** Returns the `Store.collection` method of a store that keeps its collections in a map. */
export function collectionsIn(all: ReadonlyMap<string, object>): Store['collection'] {
  // Each collection of the map holds only the records that were written to it under its own type.
  return ((name: CollectionName) => all.get(name)) as unknown as Store['collection'];
}
