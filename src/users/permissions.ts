// What users may do at APIs: what was given to them, and what their roles bring.
import type { Frozen } from '../records/record.ts';
import type { PermissionRecord } from '../records/roles.ts';
import type { UserRecord } from '../records/users.ts';
import type { Store } from '../store/contract.ts';

/** Where a user has a permission from. */
interface PermissionSource {
  source_type: 'DIRECT' | 'ROLE';
  /** The role's; empty for one that was given to the user. */
  source_id: string;
  source_name: string;
}

/** A permission of a user; the same one may be from several sources. */
interface UserPermission extends PermissionRecord {
  sources: PermissionSource[];
}

const DIRECT: PermissionSource = { source_type: 'DIRECT', source_id: '', source_name: '' };

/** All permissions of a user, each once. A role that is gone brings none. */
export async function permissionsOf(
  store: Store,
  user: Pick<Frozen<UserRecord>, 'permissions' | 'roles'>,
): Promise<UserPermission[]> {
  const roles = await Promise.all((user.roles ?? []).map((id) => store.collection('roles').get(id)));
  const found = new Map<string, UserPermission>();
  const add = (permissions: readonly PermissionRecord[], source: PermissionSource) => {
    for (const { resource_server_identifier, permission_name } of permissions) {
      const key = `${resource_server_identifier}\n${permission_name}`;
      const known = found.get(key);
      if (known !== undefined) known.sources.push(source);
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

/** The names of a user's permissions at an API. @param roles further ones, within an organization. */
export async function permissionsAt(
  store: Store,
  user: Pick<Frozen<UserRecord>, 'permissions' | 'roles'>,
  identifier: string,
  roles: readonly string[] = [],
): Promise<string[]> {
  const all = { ...user, roles: [...(user.roles ?? []), ...roles] };
  return (await permissionsOf(store, all))
    .filter((permission) => permission.resource_server_identifier === identifier)
    .map((permission) => permission.permission_name);
}
