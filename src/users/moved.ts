// Users who move here from a custom database, one by one, as they log in. That database verifies the first login; from then
// on their password is stored here.
import { DATABASE } from '../records/connections.ts';
import { identityId } from '../records/identities.ts';
import { UniqueKeyError } from '../store/contract.ts';
import type { ExpectedConnection } from './connection-check.ts';
import { createUser } from './create.ts';
import type { Credentials, PasswordCheck } from './credentials.ts';
import { addressesOf, type DatabaseUser, isSameUser } from './database-user.ts';
import { originalUserId } from './identities.ts';
import { factorWrites, factorWritesIfNone } from './imported-factors.ts';
import { rootProfile } from './root-profile.ts';
import type { User, UsersDependencies } from './user.ts';

/** A user of the database. */
export interface MovedUser extends DatabaseUser, ExpectedConnection {
  /** The password that the database has just verified; undefined if this is not a login. */
  password?: string;
}

/**
 * Creates the user, or sets the first password of a user who was created before. Concurrent calls create one user and set one
 * password. A password that is stored here is never replaced.
 * @returns the user, and the check by which their password is verified from now on; undefined if the user has no address, or
 *   the address or the id belongs to another user.
 */
export async function moveUser(
  deps: UsersDependencies,
  credentials: Pick<Credentials, 'load' | 'setFirst'>,
  moved: MovedUser,
): Promise<{ user: User; verify: PasswordCheck } | undefined> {
  const { connection, connectionId, upstreamId, profile, metadata, password, factors } = moved;
  const { addresses, unique } = addressesOf(moved);
  if (Object.keys(addresses).length === 0) return undefined;
  const { email: _1, username: _2, ...claims } = rootProfile({ profile, nonPersistent: [] });
  const passwordHash = password === undefined ? undefined : await deps.hasher.hash(password);
  try {
    const created = await createUser(deps, {
      identity: { connection, connectionId, provider: DATABASE, upstreamId, addresses, unique },
      profile: { ...claims, ...metadata },
      passwordHash,
      also: ({ id }) => factorWrites(deps, id, factors),
    });
    if ('user' in created) return { user: created.user, verify: await credentials.load(created.user.id) };
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  const before = await deps.store.collection('identities').get(identityId(connection, upstreamId));
  if (before === undefined || !isSameUser(before, moved)) return undefined;
  if (passwordHash !== undefined)
    await credentials.setFirst(
      originalUserId(before),
      passwordHash,
      await factorWritesIfNone(deps, before, factors),
    );
  const user = await deps.store.collection('users').get(before.user_id);
  return user && { user, verify: await credentials.load(user.id, originalUserId(before)) };
}
