// Collections whose names are not known where they are used: of a list, or of a map.
import type { CollectionName } from '../records/collections.ts';
import type { Stored } from '../records/record.ts';
import type { Collection, Store } from './contract.ts';

/**
 * A collection by a name that only the running program knows. What is written there must have been read there, or be of the same
 * collection elsewhere.
 */
export function collectionByName<Record extends Stored = Stored>(
  store: Store,
  name: CollectionName,
): Collection<Record> {
  // To the types a collection of one of several names takes only what all of them take, which is nothing.
  return store.collection(name) as unknown as Collection<Record>;
}

/** `Store.collection` of a store that has its collections in a map: below the contract all records are alike. */
export function collectionsIn(all: ReadonlyMap<string, object>): Store['collection'] {
  // A collection holds only what came in as its own.
  return ((name: CollectionName) => all.get(name)) as unknown as Store['collection'];
}
