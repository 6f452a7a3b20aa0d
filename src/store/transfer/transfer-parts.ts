// Which records are transferred when a store is copied: all but those that belong to one store only.
import type { CollectionName } from '../../records/collections.ts';
import type { Snapshot } from '../contract.ts';
import type { AnyRecord } from '../record.ts';
import { collectionSpecs } from '../record.ts';
import { CHECK, CHECK_BEFORE } from '../sealing/open.ts';

/** The id of the record in `marks` that marks a store as half filled; such a store is not opened. */
export const FILLING = 'moving-in';

const OWN: Readonly<Record<string, readonly string[]>> = {
  // The check values of the key that this store's secrets are sealed with.
  keyChecks: [CHECK, CHECK_BEFORE],
  marks: [FILLING],
};

/** Returns the collections that are transferred: all but those kept in memory only. */
export function transferredCollections(): CollectionName[] {
  return collectionSpecs()
    .filter(([, { kept }]) => kept !== 'memory')
    .map(([name]) => name as CollectionName);
}

export interface Part {
  collection: CollectionName;
  records: readonly AnyRecord[];
}

/** Returns a part without the records that belong to one store only. */
function transferredPart({ collection, records }: Part): Part {
  const own = OWN[collection];
  return own === undefined
    ? { collection, records }
    : { collection, records: records.filter(({ id }) => !own.includes(id)) };
}

export async function* transferredParts({ records }: Pick<Snapshot, 'records'>): AsyncGenerator<Part> {
  for (const collection of transferredCollections()) {
    for await (const page of records(collection)) yield transferredPart({ collection, records: page });
  }
}
