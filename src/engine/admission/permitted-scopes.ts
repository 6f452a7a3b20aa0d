// Decides which scopes of an API a user may have.
import type { ResourceServer as Api } from '../../records/collections.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { Organizations } from './organizations.ts';

interface PermittedDependencies {
  users: Pick<Users, 'permissionsAt'>;
  organizations: Pick<Organizations, 'rolesOf'>;
}

/**
 * Returns the scopes of an API that a user may have. With `enforce_policies` each needs a permission of the same
 * name, the user's own or that of a role; roles within the organization of the tokens count, too.
 */
export async function permittedScopes(
  { users, organizations }: PermittedDependencies,
  api: Api,
  user: User | undefined,
  organization: string | undefined,
): Promise<string[]> {
  const all = api.scopes.map(({ value }) => value);
  if (!api.enforce_policies) return all;
  if (user === undefined) return [];
  const roles = await organizations.rolesOf(organization, user.id);
  const permissions = await users.permissionsAt(user, api.identifier, roles);
  return all.filter((scope) => permissions.includes(scope));
}
