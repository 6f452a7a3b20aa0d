// Changes the addresses of a user in a custom database.
import type { Connection } from '../../../records/collections.ts';
import type { UserRecord } from '../../../records/users.ts';
import { UniqueKeyError } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import { isLinked } from '../../../users/identities.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import type { CustomDatabases } from './custom.ts';
import { customDatabaseOf } from './custom-user.ts';

interface CustomAddressesDependencies {
  config: Pick<Config, 'connection'>;
  customDatabases: CustomDatabases;
}

/**
 * Changes the addresses of a user in the custom database, before they are changed here.
 * @param applies whether they are changed here; asked right before they are changed there, as the database cannot take
 *   part in the write.
 * @throws UniqueKeyError if another user has one of them, here or there. @throws AuthError 503 if it was not changed there.
 */
export async function changeInDatabase(
  users: Users,
  deps: CustomAddressesDependencies,
  userId: string,
  patch: Partial<UserRecord>,
  applies: (current: User) => boolean = () => true,
): Promise<void> {
  const [before, identities] = await Promise.all([users.get(userId), users.identitiesOf(userId)]);
  const identity = identities.find((one) => !isLinked(one));
  const found = customDatabaseOf(identity && (await deps.config.connection(identity.connection)));
  if (before === undefined || found === undefined) return;
  const change: AddressChange = { email_verified: patch.email_verified };
  for (const kind of ['email', 'username'] as const) {
    const value = patch[kind];
    if (value === undefined || value === before[kind]) continue;
    const request = { connection: found.connection, identifier: value };
    const databaseUser = await deps.customDatabases.find(request);
    const identityHere = await users.identityInConnection(found.connection, value);
    const isTheirs = databaseUser?.upstreamId === identity?.upstream_id;
    if (
      (databaseUser !== undefined && !isTheirs) ||
      (identityHere !== undefined && identityHere.user_id !== userId)
    )
      throw new UniqueKeyError('identities', kind);
    if (databaseUser === undefined) change[kind] = value;
    // The database has the new address already, such as when it was changed there first.
    else if (kind === 'email') change.email_verified = before.email_verified;
  }
  if (found.mode !== 'elsewhere') return;
  const current = await users.get(userId);
  if (current !== undefined && applies(current))
    await changeAddresses(deps, found.connection, before, change);
}

/** What to change in the custom database; `email_verified` is that of the new or the present address. */
interface AddressChange {
  email?: string;
  username?: string;
  email_verified: boolean | undefined;
}

async function changeAddresses(
  { customDatabases }: CustomAddressesDependencies,
  connection: Connection,
  before: User,
  change: AddressChange,
): Promise<void> {
  const { email: address, username: name } = before;
  const verified = change.email_verified ?? (change.email === undefined && before.email_verified);
  if (address !== undefined && (change.email !== undefined || verified !== before.email_verified)) {
    const args = [address, change.email ?? address, verified];
    await customDatabases.change({ connection, identifier: address }, 'change_email', args);
  }
  if (name !== undefined && change.username !== undefined) {
    await customDatabases.change({ connection, identifier: name }, 'change_username', [
      name,
      change.username,
    ]);
  }
}
