// Fills a store with the records of another. An interrupted attempt can be repeated; the two stores are compared at the
// end.

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { CollectionName } from '../../records/collections.ts';
import type { Store, Write } from '../contract.ts';
import { collectionByName } from '../contract.ts';
import type { AnyRecord } from '../record.ts';
import { collectionSpecs } from '../record.ts';
import { FILLING, type Part, transferredCollections, transferredParts } from './transfer-parts.ts';

export interface Progress {
  collection: string;
  records: number;
}

/**
 * Fills a store that is empty or was left half filled by an earlier attempt.
 * @param target opened with a clock that stands still, so that no copied record expires meanwhile.
 * @param parts the records of the source.
 * @returns how many records were copied.
 * @throws Error when the target holds something else, or differs from the source at the end.
 */
export async function fillStore(
  target: Store,
  parts: AsyncIterable<Part>,
  onProgress: (progress: Progress) => void = () => undefined,
): Promise<number> {
  const marks = target.collection('marks');
  const isResumed = (await marks.get(FILLING)) !== undefined;
  if (!isResumed) {
    const nonEmpty = await firstNonEmpty(target);
    if (nonEmpty !== undefined) throw new Error(`the store is not empty: it has ${nonEmpty}`);
    await marks.put({ id: FILLING });
  }
  const source = createDigest();
  let records = 0;
  for await (const part of parts) {
    source.add(part.collection, part.records);
    await putAll(target, part, isResumed);
    records += part.records.length;
    onProgress({ collection: part.collection, records });
  }
  const copy = createDigest();
  await target.withSnapshot(async (snapshot) => {
    for await (const { collection, records: page } of transferredParts(snapshot)) copy.add(collection, page);
  });
  const different = differences(source, copy);
  if (different.length > 0) {
    throw new Error(
      `the copy differs from what it is of, in ${different.join(', ')}: empty the store that was to be filled, and begin anew`,
    );
  }
  await marks.delete(FILLING);
  return records;
}

/** Returns the first collection that holds anything, apart from what a new store contains itself. */
async function firstNonEmpty(store: Store): Promise<string | undefined> {
  const others = transferredCollections().filter((name) => name !== 'marks' && name !== 'keyChecks');
  for (const name of others) if ((await store.collection(name).count()) > 0) return name;
  return undefined;
}

async function putAll(store: Store, { collection, records }: Part, isResumed: boolean): Promise<void> {
  const target = collectionByName(store, collection);
  const existing = isResumed ? await Promise.all(records.map(({ id }) => target.get(id))) : [];
  const toWrite = records.filter((record, n) => !isDeepStrictEqual(record, existing[n]));
  if (toWrite.length === 0) return;
  // Collections of the configuration have no batches; concurrent writes share one write of the file.
  if (IN_BATCHES.has(collection))
    await store.batch(toWrite.map((record) => ({ collection, put: record }) as Write));
  else await Promise.all(toWrite.map((record) => target.put(record)));
}

const IN_BATCHES: ReadonlySet<CollectionName> = new Set(
  collectionSpecs()
    .filter(([, { kept }]) => kept === undefined)
    .map(([name]) => name as CollectionName),
);

// Digests that compare the records of two stores: for each collection the number of records and a sum of their hashes,
// which does not depend on the order.

/** The sums of all collections. */
interface Digest {
  add(collection: string, records: readonly AnyRecord[]): void;
  /** The number of records and their sum by collection; empty collections are left out. */
  read(): ReadonlyMap<string, { count: number; sum: string }>;
}

/** Returns an empty digest. */
function createDigest(): Digest {
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

function differences(a: Digest, b: Digest): string[] {
  const [x, y] = [a.read(), b.read()];
  return [...new Set([...x.keys(), ...y.keys()])].filter((name) => {
    const [one, other] = [x.get(name), y.get(name)];
    return one?.count !== other?.count || one?.sum !== other?.sum;
  });
}
