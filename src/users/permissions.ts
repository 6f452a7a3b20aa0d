// The permissions of users at APIs: those assigned to them directly, and those of their roles.
import type { Frozen } from '../records/base/record.ts';
import { isRoleFor, type PermissionRecord } from '../records/users/roles.ts';
import type { UserRecord } from '../records/users/users.ts';
import type { Store } from '../store/contract.ts';

interface PermissionSource {
  source_type: 'DIRECT' | 'ROLE';
  /** The id of the role; empty for a direct permission. */
  source_id: string;
  source_name: string;
}

/** A permission of a user, which may have several sources. */
interface UserPermission extends PermissionRecord {
  sources: PermissionSource[];
}

const DIRECT: PermissionSource = { source_type: 'DIRECT', source_id: '', source_name: '' };

/**
 * Returns all permissions of a user, each once. Roles that no longer exist have none, nor has a role of an organization
 * that was not given within it.
 * @param further ids of roles within an organization.
 */
export async function permissionsOf(
  store: Store,
  user: Pick<Frozen<UserRecord>, 'permissions' | 'roles'>,
  further: readonly string[] = [],
): Promise<UserPermission[]> {
  const ids = [...(user.roles ?? []), ...further];
  const all = await Promise.all(ids.map((id) => store.collection('roles').get(id)));
  const roles = all.filter((role) => role !== undefined && (isRoleFor(role) || further.includes(role.id)));
  const found = new Map<string, UserPermission>();
  const add = (permissions: readonly PermissionRecord[], source: PermissionSource) => {
    for (const { resource_server_identifier, permission_name } of permissions) {
      const key = `${resource_server_identifier}\n${permission_name}`;
      const existing = found.get(key);
      if (existing !== undefined) existing.sources.push(source);
      else found.set(key, { resource_server_identifier, permission_name, sources: [source] });
    }
  };
  add(user.permissions ?? [], DIRECT);
  for (const role of roles) {
    if (role === undefined) continue;
    add(role.permissions, { source_type: 'ROLE', source_id: role.id, source_name: role.name });
  }
  return [...found.values()];
}

/** Returns the names of a user's permissions at an API. @param roles ids of further roles, those in an organization. */
export async function permissionsAt(
  store: Store,
  user: Pick<Frozen<UserRecord>, 'permissions' | 'roles'>,
  identifier: string,
  roles: readonly string[] = [],
): Promise<string[]> {
  return (await permissionsOf(store, user, roles))
    .filter((permission) => permission.resource_server_identifier === identifier)
    .map((permission) => permission.permission_name);
}
