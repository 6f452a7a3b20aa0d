// What else is deleted with a record that a tenant file removes, as with one that a call removes.
import { connectionRemovals } from '../management/connection-removal.ts';
import { apiRemovals } from '../management/permission-removal.ts';
import { removeConnectionParts } from '../management/resources/connections.ts';
import type { Records } from '../records/collections.ts';
import type { Store } from '../store/contract.ts';
import type { AppliedCollection } from '../tenant/declared-records.ts';

/**
 * Deletes what belongs to a record alone, and records removals that take longer: of a connection's users, of an
 * API's permissions.
 */
export async function recordRemovals(
  { store, now }: { store: Store; now(): string },
  collection: AppliedCollection,
  record: object,
): Promise<void> {
  if (collection === 'connections') {
    const { id, name } = record as Records['connections'];
    await connectionRemovals.record({ store, now }, name);
    await removeConnectionParts(store, id);
  }
  if (collection === 'resourceServers')
    await apiRemovals.record({ store, now }, (record as Records['resourceServers']).identifier);
  if (collection === 'documents')
    await store.collection('logStreamPositions').delete((record as Records['documents']).id);
}
