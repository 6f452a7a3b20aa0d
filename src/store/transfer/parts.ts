// Which records go along when a store is copied: all but what each store has of its own.
import type { CollectionName } from '../../records/collections.ts';
import type { Snapshot } from '../contract.ts';
import { collectionSpecs } from '../keys.ts';
import type { AnyRecord } from '../record.ts';
import { CHECK, CHECK_BEFORE, FORMER_CHECK } from '../sealing/open.ts';

/** In `migrations`, while a store is filled: nobody uses it until it is whole. */
export const FILLING = 'moving-in';

const OWN: Readonly<Record<string, readonly string[]>> = {
  // Of the key that this store's secrets are sealed with.
  keyChecks: [CHECK, CHECK_BEFORE, FORMER_CHECK],
  migrations: [FILLING],
};

/** The collections that go along; counters that need not survive do not. */
export function transferredCollections(): CollectionName[] {
  return collectionSpecs()
    .filter(([, { kept }]) => kept !== 'memory')
    .map(([name]) => name as CollectionName);
}

/** Some records of one collection. */
export interface Part {
  collection: CollectionName;
  records: readonly AnyRecord[];
}

/** Without what is each store's own. */
function transferredPart({ collection, records }: Part): Part {
  const own = OWN[collection];
  return own === undefined
    ? { collection, records }
    : { collection, records: records.filter(({ id }) => !own.includes(id)) };
}

/** All that goes along of a store, at one snapshot. */
export async function* transferredParts({ records }: Pick<Snapshot, 'records'>): AsyncGenerator<Part> {
  for (const collection of transferredCollections()) {
    for await (const page of records(collection)) yield transferredPart({ collection, records: page });
  }
}
