// The permissions of roles and users.
import { z } from 'zod';
import type { PermissionRecord } from '../../../../records/users/roles.ts';
import type { Store } from '../../../../store/contract.ts';
import { apiError } from '../../management-errors.ts';

export const permissionBody = z.strictObject({
  permissions: z
    .array(
      z.strictObject({
        resource_server_identifier: z.string().min(1).max(600),
        permission_name: z.string().min(1).max(280),
      }),
    )
    .min(1)
    .max(1000),
});

/** Returns permissions as the API shows them, with the names of their APIs. */
export async function permissionViews(
  store: Store,
  permissions: readonly PermissionRecord[],
): Promise<object[]> {
  return Promise.all(
    permissions.map(async ({ resource_server_identifier: identifier, permission_name }) => {
      const [api] = await store.collection('resourceServers').findBy('identifier', identifier);
      return {
        resource_server_identifier: identifier,
        permission_name,
        resource_server_name: api?.name ?? identifier,
        description: api?.scopes.find(({ value }) => value === permission_name)?.description ?? null,
      };
    }),
  );
}

/** Checks that permissions exist. @throws AuthError 404 */
export async function requirePermissions(
  store: Store,
  permissions: readonly PermissionRecord[],
): Promise<void> {
  for (const { resource_server_identifier: identifier, permission_name } of permissions) {
    const [api] = await store.collection('resourceServers').findBy('identifier', identifier);
    if (api?.scopes.some(({ value }) => value === permission_name) === true) continue;
    throw apiError(404, 'One or more of the permissions do not exist', 'inexistent_permission');
  }
}

const samePermission = (a: PermissionRecord, b: PermissionRecord) =>
  a.resource_server_identifier === b.resource_server_identifier && a.permission_name === b.permission_name;

/** Returns the permissions with others added, without duplicates. */
export function withPermissions(
  before: readonly PermissionRecord[],
  added: readonly PermissionRecord[],
): PermissionRecord[] {
  return [...before, ...added.filter((one) => !before.some((other) => samePermission(one, other)))];
}

export function withoutPermissions(
  before: readonly PermissionRecord[],
  removed: readonly PermissionRecord[],
): PermissionRecord[] {
  return before.filter((one) => !removed.some((other) => samePermission(one, other)));
}
