// A store whose operations are timed: what stands around another one while metrics are on.
import type { CollectionName } from '../records/collections.ts';
import type { Measures } from '../runtime/measures.ts';
import type { Store } from './contract.ts';
import { collectionSpecs } from './keys.ts';

type Method = (...parameters: unknown[]) => Promise<unknown>;

/** Times each operation of a store, under the name that the contract gives it. */
export function measuredStore(store: Store, { storeOperation }: Pick<Measures, 'storeOperation'>): Store {
  const timed =
    (name: string, method: Method): Method =>
    async (...parameters) => {
      const began = performance.now();
      try {
        return await method(...parameters);
      } finally {
        storeOperation(name, (performance.now() - began) / 1000);
      }
    };
  const collections = new Map(
    collectionSpecs().map(([name]) => {
      const methods = Object.entries(store.collection(name as CollectionName)) as [string, Method][];
      return [name, Object.fromEntries(methods.map(([key, method]) => [key, timed(key, method)]))];
    }),
  );
  return {
    ...store,
    // The methods are those of the collection that it asks for.
    collection: ((name: CollectionName) => collections.get(name)) as unknown as Store['collection'],
    batch: timed('batch', store.batch as Method) as Store['batch'],
    ready: timed('ready', store.ready) as Store['ready'],
  };
}
