// Users who come here from an older database, one by one, as they log in: the older one says who they are, and from then
// on their password is kept here.
import { DATABASE } from '../records/connections.ts';
import { identityId } from '../records/identities.ts';
import { UniqueKeyError } from '../store/contract.ts';
import { factorsOf } from './brought-factors.ts';
import { createUser } from './create.ts';
import type { Credentials, PasswordCheck } from './credentials.ts';
import { addressesOf, type DatabaseUser, isSameUser } from './database-user.ts';
import { homeOf } from './identities.ts';
import { factorWrites } from './imported-factors.ts';
import { rootProfile } from './root-profile.ts';
import type { User, UsersDependencies } from './user.ts';

/** Somebody as the older database has them. */
export interface MovedUser extends DatabaseUser {
  /** The connection's name. */
  connection: string;
  /** The password that the older database has just found right; none where nobody was asked for one. */
  password?: string;
}

/**
 * Makes the user, or gives the one who was made before a first password. Of any number of moves at once one makes the user,
 * and one sets the password: a password that is here already is never replaced.
 * @returns with what their password is now verified by; undefined where there is no address, or the address or the id is another user's.
 */
export async function moveUser(
  deps: UsersDependencies,
  credentials: Pick<Credentials, 'load' | 'setFirst'>,
  moved: MovedUser,
): Promise<{ user: User; verify: PasswordCheck } | undefined> {
  const { connection, upstreamId, profile, metadata, password, factors } = moved;
  const { addresses, unique } = addressesOf(moved);
  if (Object.keys(addresses).length === 0) return undefined;
  const { email: _1, username: _2, ...said } = rootProfile({ profile, nonPersistent: [] });
  const passwordHash = password === undefined ? undefined : await deps.hasher.hash(password);
  try {
    const made = await createUser(deps, {
      identity: { connection, provider: DATABASE, upstreamId, addresses, unique },
      profile: { ...said, ...metadata },
      passwordHash,
      also: ({ id }) => factorWrites(deps, id, factors),
    });
    if ('user' in made) return { user: made.user, verify: await credentials.load(made.user.id) };
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  const before = await deps.store.collection('identities').get(identityId(connection, upstreamId));
  if (before === undefined || !isSameUser(before, moved)) return undefined;
  if (passwordHash !== undefined)
    await credentials.setFirst(homeOf(before), passwordHash, await factorsOf(deps, before, factors));
  const user = await deps.store.collection('users').get(before.user_id);
  return user && { user, verify: await credentials.load(user.id, homeOf(before)) };
}
