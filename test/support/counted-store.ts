// A store that counts the round trips of what is durable: what a request asks of it one after another.
import { setImmediate } from 'node:timers/promises';
import { type CollectionName, collections } from '../../src/records/collections.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import type { StoreOptions } from '../../src/store/store-options.ts';

interface StoreCount {
  /** Opens the store that is counted. */
  open(options: StoreOptions): Promise<Store>;
  /** Begins to count anew. */
  reset(): void;
  /** The round trips since, each as the operations that were under way together. */
  trips(): readonly (readonly string[])[];
}

/** Log streams look for themselves, beside whatever request there is. */
const isOfLogStreams = (name: string, [index, value]: readonly unknown[]) =>
  name === 'documents.findBy' && index === 'kind' && value === 'log-stream';

/** Counts: an operation that starts while none is under way begins a round trip; a batch is one operation. */
export function countStore(): StoreCount {
  let trips: string[][] = [];
  let underWay = 0;
  const counted =
    (name: string, method: (...parameters: unknown[]) => unknown) =>
    async (...parameters: unknown[]) => {
      if (isOfLogStreams(name, parameters)) return method(...parameters);
      if (underWay === 0) trips.push([]);
      underWay += 1;
      trips.at(-1)?.push(name);
      try {
        return await method(...parameters);
      } finally {
        // As long as any database takes: what is answered at once would be over before what is asked beside it began.
        await setImmediate();
        underWay -= 1;
      }
    };
  return {
    open: async (options) => {
      const store = await openStore(options);
      const wrapped = new Map(
        Object.entries(collections).map(([name, { kept }]) => {
          const collection = store.collection(name as CollectionName);
          // Log events are written beside a request, which does not wait for them, and deliveries removed beside one;
          // a delivery that a request waits for is written in a batch.
          if (kept === 'memory' || name === 'logs' || name === 'deliveries') return [name, collection];
          const methods = Object.entries(collection).map(([method, run]) => [
            method,
            counted(`${name}.${method}`, run as (...parameters: unknown[]) => unknown),
          ]);
          return [name, Object.fromEntries(methods)];
        }),
      );
      return {
        ...store,
        collection: (name: CollectionName) => wrapped.get(name),
        batch: (writes: Parameters<Store['batch']>[0]) =>
          counted(`batch(${writes.map(({ collection }) => collection)})`, () => store.batch(writes))(),
      } as unknown as Store;
    },
    reset: () => {
      trips = [];
    },
    trips: () => trips,
  };
}
