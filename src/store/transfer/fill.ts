// Fills a store with the records of another: again and again until it is whole, and compares both at the end.

import { isDeepStrictEqual } from 'node:util';
import type { CollectionName } from '../../records/collections.ts';
import { collectionByName } from '../collection-by-name.ts';
import type { Store, Write } from '../contract.ts';
import { collectionSpecs } from '../keys.ts';
import { migrate } from '../migrate.ts';
import { createDigest, differences } from './digest.ts';
import { FILLING, type Part, transferredCollections, transferredParts } from './parts.ts';

/** How far it has come. */
export interface Progress {
  collection: string;
  records: number;
}

/**
 * Fills a store that is empty, or was left half filled by an earlier try.
 * @param target opened with a clock that stands still, so that no record of the source expires meanwhile.
 * @param parts the records of the source.
 * @returns how many records it has. @throws Error when it holds something else, or differs from the source at the end.
 */
export async function fillStore(
  target: Store,
  parts: AsyncIterable<Part>,
  tell: (progress: Progress) => void = () => undefined,
): Promise<number> {
  const marks = target.collection('migrations');
  const isResumed = (await marks.get(FILLING)) !== undefined;
  if (!isResumed) {
    const taken = await firstTaken(target);
    if (taken !== undefined) throw new Error(`the store is not empty: it has ${taken}`);
    await marks.put({ id: FILLING });
  }
  const source = createDigest();
  const changes = new Set<string>();
  let records = 0;
  for await (const part of parts) {
    source.add(part.collection, part.records);
    if (part.collection === 'migrations') for (const { id } of part.records) changes.add(id);
    await putAll(target, part, isResumed);
    records += part.records.length;
    tell({ collection: part.collection, records });
  }
  // What the new store has marked as done while it was empty may have to be done to what came.
  for (const { id } of (await marks.list({ limit: 1000 })).records)
    if (id !== FILLING && !changes.has(id)) await marks.delete(id);
  const copy = createDigest();
  await target.withSnapshot(async (snapshot) => {
    for await (const { collection, records: page } of transferredParts(snapshot)) copy.add(collection, page);
  });
  const wrong = differences(source, copy);
  if (wrong.length > 0) {
    throw new Error(
      `the copy differs from what it is of, in ${wrong.join(', ')}: empty the store that was to be filled, and begin anew`,
    );
  }
  await migrate(target);
  await marks.delete(FILLING);
  return records;
}

/** The first collection that holds anything; what a new store has of its own does not count. */
async function firstTaken(store: Store): Promise<string | undefined> {
  const others = transferredCollections().filter((name) => name !== 'migrations' && name !== 'keyChecks');
  for (const name of others) if ((await store.collection(name).count()) > 0) return name;
  return undefined;
}

async function putAll(store: Store, { collection, records }: Part, isResumed: boolean): Promise<void> {
  const to = collectionByName(store, collection);
  const there = isResumed ? await Promise.all(records.map(({ id }) => to.get(id))) : [];
  const missing = records.filter((record, n) => !isDeepStrictEqual(record, there[n]));
  if (missing.length === 0) return;
  // Configuration has no batches; what is put at once shares a write.
  if (IN_BATCHES.has(collection))
    await store.batch(missing.map((record) => ({ collection, put: record }) as Write));
  else await Promise.all(missing.map((record) => to.put(record)));
}

const IN_BATCHES: ReadonlySet<CollectionName> = new Set(
  collectionSpecs()
    .filter(([, { kept }]) => kept === undefined)
    .map(([name]) => name as CollectionName),
);
