// A store that counts round trips to durable collections: what a request must wait for, one after another.
import { setImmediate } from 'node:timers/promises';
import { type CollectionName, collections } from '../../src/records/collections.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import type { StoreOptions } from '../../src/store/store-options.ts';

interface StoreCount {
  /** Opens the store that is counted. */
  open(options: StoreOptions): Promise<Store>;
  /** Resets the count. */
  reset(): void;
  /** The round trips since the reset; each is the list of operations that were under way together. */
  trips(): readonly (readonly string[])[];
}

/** Reads of log streams, which happen independently of requests, are not counted. */
const isOfLogStreams = (name: string, [index, value]: readonly unknown[]) =>
  name === 'documents.findBy' && index === 'kind' && value === 'log-stream';

/** Counts an operation: one that starts while none is under way begins a round trip; a batch is one operation. */
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
        // Delays the answer by a turn, as a real database would: otherwise the operation would end before others sent
        // with it begin.
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
          // Requests do not wait for writes of log events and for the removal of deliveries. A delivery that a request
          // waits for is written in a batch.
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
