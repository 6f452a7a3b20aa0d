// What else is deleted with a record that a tenant file removes, as with one that a call removes.
import { removeConnectionParts } from '../../features/management/resources/connections.ts';
import type { Records } from '../../records/collections.ts';
import type { Store } from '../../store/contract.ts';
import type { AppliedCollection } from '../../tenant/declared-records.ts';

/** Deletes what belongs to a record alone. */
export async function removeParts(
  store: Store,
  collection: AppliedCollection,
  record: object,
): Promise<void> {
  if (collection === 'connections') await removeConnectionParts(store, (record as Records['connections']).id);
  if (collection === 'documents')
    await store.collection('logStreamPositions').delete((record as Records['documents']).id);
}
