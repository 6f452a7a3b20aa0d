// Digests that compare the records of two stores: for each collection the number of records and a sum of their hashes,
// which does not depend on the order.
import { createHash } from 'node:crypto';
import type { AnyRecord } from '../record.ts';

/** The sums of all collections. */
interface Digest {
  add(collection: string, records: readonly AnyRecord[]): void;
  /** The number of records and their sum by collection; empty collections are left out. */
  read(): ReadonlyMap<string, { count: number; sum: string }>;
}

/** Returns an empty digest. */
export function createDigest(): Digest {
  const sums = new Map<string, { count: number; sum: bigint }>();
  return {
    add(collection, records) {
      const known = sums.get(collection) ?? { count: 0, sum: 0n };
      for (const record of records) {
        const hash = createHash('sha256').update(JSON.stringify(record)).digest();
        known.sum = (known.sum + hash.readBigUInt64BE() * 2n ** 64n + hash.readBigUInt64BE(8)) % 2n ** 128n;
      }
      known.count += records.length;
      if (known.count > 0) sums.set(collection, known);
    },
    read: () => new Map([...sums].map(([name, { count, sum }]) => [name, { count, sum: sum.toString(16) }])),
  };
}

/** Returns the collections in which two digests differ. */
export function differences(a: Digest, b: Digest): string[] {
  const [x, y] = [a.read(), b.read()];
  return [...new Set([...x.keys(), ...y.keys()])].filter((name) => {
    const [one, other] = [x.get(name), y.get(name)];
    return one?.count !== other?.count || one?.sum !== other?.sum;
  });
}
