// Deletes the client grants of a deleted API, and removes its permissions from all roles and users, in the background:
// otherwise a new API with the same identifier would give them back. A document that names the API is stored before the API is deleted, so that an
// interrupted removal continues at the next start.
import type { PermissionRecord } from '../records/roles.ts';
import type { Background } from '../runtime/background.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { documentsOf } from './document-resource.ts';
import { apiError } from './errors.ts';

export interface PermissionRemovalDependencies {
  store: Store;
  background: Background;
  /** ISO 8601. */
  now(): string;
}

const KIND = 'api-removal';
const removalId = (identifier: string) => `${KIND}/${identifier}`;

/** How many users are read at once. */
const PAGE = 500;

/** Stores that the permissions of an API are to be removed. Call it before the API is deleted. */
export async function announcePermissionRemoval(
  { store, now }: Pick<PermissionRemovalDependencies, 'store' | 'now'>,
  identifier: string,
): Promise<void> {
  const at = now();
  await store
    .collection('documents')
    .put({ id: removalId(identifier), kind: KIND, body: { identifier }, created_at: at, updated_at: at });
}

/**
 * Deletes the client grants of a deleted API, and starts to remove its permissions in the background. A client grant
 * that is left would apply to the next API with that identifier.
 */
export async function removePermissionsOf(
  { store, background }: PermissionRemovalDependencies,
  identifier: string,
): Promise<void> {
  for (const grant of await listAll(store.collection('clientGrants')))
    if (grant.audience === identifier) await store.collection('clientGrants').delete(grant.id);
  const isOf = (one: Pick<PermissionRecord, 'resource_server_identifier'>) =>
    one.resource_server_identifier === identifier;
  background.run('the removal of the permissions of an API', async () => {
    for (const name of ['roles', 'users'] as const) {
      const collection = store.collection(name);
      for (let after: string | undefined; ; ) {
        const { records, next } = await collection.list({
          limit: PAGE,
          ...(after !== undefined && { after }),
        });
        for (const { id, permissions } of records) {
          if (permissions?.some(isOf) !== true) continue;
          // The cast is for the two types of record, of which this member is the common part.
          await collection.update(
            id,
            (current: { permissions?: readonly PermissionRecord[] }) =>
              ({ ...current, permissions: (current.permissions ?? []).filter((one) => !isOf(one)) }) as never,
          );
        }
        if (next === undefined) break;
        after = next;
      }
    }
    await store.collection('documents').delete(removalId(identifier));
  });
}

/** Continues the removals that the end of the process interrupted. */
export async function resumePermissionRemovals(deps: PermissionRemovalDependencies): Promise<void> {
  for (const { id, body } of await documentsOf(deps.store, KIND)) {
    const identifier = String(body.identifier);
    const [api] = await deps.store.collection('resourceServers').findBy('identifier', identifier);
    // The process ended before the API itself was deleted.
    if (api !== undefined) await deps.store.collection('documents').delete(id);
    else await removePermissionsOf(deps, identifier);
  }
}

/**
 * Refuses to create an API while permissions of a deleted one with that identifier are left.
 * @throws AuthError 409
 */
export async function refuseWhilePermissionsRemain(store: Store, identifier: string): Promise<void> {
  if ((await store.collection('documents').get(removalId(identifier))) === undefined) return;
  throw apiError(409, 'A resource server with the same identifier is being deleted, try again later');
}
