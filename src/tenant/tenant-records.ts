// The records of a tenant that a file declares.
import type { Frozen } from '../records/base/record.ts';
import type { Records } from '../records/collections.ts';
import type { Store } from '../store/contract.ts';
import { collectionByName } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';

/** The collections of a tenant file, in the order in which they are written. */
export const APPLIED_COLLECTIONS = [
  'tenant',
  'clients',
  'resourceServers',
  'connections',
  'clientGrants',
  'organizations',
  'roles',
  'documents',
] as const;
export type AppliedCollection = (typeof APPLIED_COLLECTIONS)[number];

export type TenantRecords = { [N in AppliedCollection]: Frozen<Records[N]>[] };

/** Returns the stored records of all collections that a file can be applied to. */
export async function storedRecords(store: Store): Promise<TenantRecords> {
  const lists = await Promise.all(APPLIED_COLLECTIONS.map((name) => listAll(collectionByName(store, name))));
  return Object.fromEntries(APPLIED_COLLECTIONS.map((name, index) => [name, lists[index]])) as TenantRecords;
}
