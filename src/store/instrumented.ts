// Stores that wrap another store to measure or trace its operations.

import type { CollectionName } from '../records/collections.ts';
import type { Measures } from '../runtime/measures.ts';
import type { Tracing } from '../runtime/tracing.ts';
import type { Store } from './contract.ts';
import { collectionsIn } from './contract.ts';
import { collectionSpecs } from './record.ts';

type Method = (...parameters: unknown[]) => Promise<unknown>;

/** Runs an operation of the contract; `collection` is undefined for operations on several collections. */
type Around = (
  operation: string,
  collection: CollectionName | undefined,
  run: () => Promise<unknown>,
) => Promise<unknown>;

function wrapped(store: Store, around: Around): Store {
  const wrap =
    (operation: string, method: Method, collection?: CollectionName): Method =>
    (...parameters) =>
      around(operation, collection, () => method(...parameters));
  const collections = new Map(
    collectionSpecs().map(([name]) => {
      const of = name as CollectionName;
      const methods = Object.entries(store.collection(of)) as [string, Method][];
      return [name, Object.fromEntries(methods.map(([key, method]) => [key, wrap(key, method, of)]))];
    }),
  );
  return {
    ...store,
    collection: collectionsIn(collections),
    batch: wrap('batch', store.batch as Method) as Store['batch'],
    ready: wrap('ready', store.ready) as Store['ready'],
  };
}

/** Returns a store that measures the duration of each operation, in seconds. */
export function measuredStore(store: Store, { storeOperation }: Pick<Measures, 'storeOperation'>): Store {
  return wrapped(store, async (operation, _collection, run) => {
    const began = performance.now();
    try {
      return await run();
    } finally {
      storeOperation(operation, (performance.now() - began) / 1000);
    }
  });
}

export function tracedStore(store: Store, { span }: Pick<Tracing, 'span'>): Store {
  return wrapped(store, (operation, collection, run) => {
    const of = collection === undefined ? {} : { 'db.collection.name': collection };
    return span(`store.${operation}`, { 'db.operation.name': operation, ...of }, run);
  });
}
