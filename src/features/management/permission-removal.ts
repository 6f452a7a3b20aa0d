// Deletes the client grants of a deleted API, and removes its permissions from all roles and users: otherwise a new API
// with the same identifier would give them back.
import type { Stored } from '../../records/base/record.ts';
import type { PermissionRecord } from '../../records/users/roles.ts';
import type { Store } from '../../store/contract.ts';
import { listAll, pagesOf } from '../../store/list-all.ts';
import { pendingRemovals } from './pending-removal.ts';

/** The removals of APIs whose permissions may be left. */
export const apiRemovals = pendingRemovals('resourceServers');

/** How many users are read at once. */
const PAGE = 500;

/** What users and roles have in common here. */
interface Holder extends Stored {
  permissions?: PermissionRecord[];
}

/** Deletes the client grants of a deleted API. */
export async function removeClientGrantsOf(store: Store, identifier: string): Promise<void> {
  for (const grant of await listAll(store.collection('clientGrants')))
    if (grant.audience === identifier) await store.collection('clientGrants').delete(grant.id);
}

/** Removes the permissions of a deleted API from all roles and users. */
export async function removePermissionsOf(store: Store, identifier: string): Promise<void> {
  const isOf = (one: Pick<PermissionRecord, 'resource_server_identifier'>) =>
    one.resource_server_identifier === identifier;
  for (const name of ['roles', 'users'] as const) {
    const collection = store.collection(name);
    for await (const page of pagesOf<Holder>(collection, { limit: PAGE })) {
      for (const { id, permissions } of page) {
        if (permissions?.some(isOf) !== true) continue;
        // The cast is for the two types of record, of which this member is the common part.
        await collection.update(
          id,
          (current: { permissions?: readonly PermissionRecord[] }) =>
            ({ ...current, permissions: (current.permissions ?? []).filter((one) => !isOf(one)) }) as never,
        );
      }
    }
  }
  await apiRemovals.complete(store, identifier);
}

/** Continues the removals that the end of the process interrupted. */
export async function resumePermissionRemovals(store: Store): Promise<void> {
  const exists = async (identifier: string) =>
    (await store.collection('resourceServers').findBy('identifier', identifier)).length > 0;
  await apiRemovals.resume(store, exists, async (identifier) => {
    await removeClientGrantsOf(store, identifier);
    await removePermissionsOf(store, identifier);
  });
}
