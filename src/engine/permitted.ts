// The scopes of an API that a user may have.
import type { ResourceServer as Api } from '../records/collections.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import type { Organizations } from './organizations.ts';

interface PermittedDependencies {
  users: Pick<Users, 'permissionsAt'>;
  organizations: Pick<Organizations, 'rolesOf'>;
}

/**
 * The scopes of an API that a user may have: with `enforce_policies` it takes a permission of the same name, the user's
 * own or of a role of theirs, also of one within the organization that the tokens are for.
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
