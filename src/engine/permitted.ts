// The scopes of an API that a user may have.
import type { ResourceServer as Api } from '../records/collections.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';

/**
 * The scopes of an API that a user may have: with `enforce_policies` it takes a permission of the same name, the user's
 * own or of a role of theirs.
 */
export async function permittedScopes(
  users: Pick<Users, 'permissionsAt'>,
  api: Api,
  user: User | undefined,
): Promise<string[]> {
  const all = api.scopes.map(({ value }) => value);
  if (!api.enforce_policies) return all;
  const permissions = user === undefined ? [] : await users.permissionsAt(user, api.identifier);
  return all.filter((scope) => permissions.includes(scope));
}
