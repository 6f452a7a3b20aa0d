// Users who come here from an older database, one by one, as they log in: the older one says who they are, and from then
// on their password is kept here.
import { DATABASE, STRATEGIES } from '../records/connections.ts';
import { identityId } from '../records/identities.ts';
import { UniqueKeyError } from '../store/contract.ts';
import { createUser } from './create.ts';
import type { Credentials, PasswordCheck } from './credentials.ts';
import { homeOf } from './identities.ts';
import { rootProfile, type UpstreamUser } from './upstream.ts';
import type { User, UsersDependencies } from './user.ts';

/** Somebody as the older database has them. */
export interface MovedUser extends Pick<UpstreamUser, 'connection' | 'upstreamId' | 'profile' | 'metadata'> {
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
  const { connection, upstreamId, profile, metadata, password } = moved;
  const { email, username: name, phone_number, ...said } = rootProfile({ profile, nonPersistent: [] });
  const username = name?.trim().toLowerCase();
  if (email === undefined && username === undefined) return undefined;
  const addresses = {
    ...(email !== undefined && { email }),
    ...(username !== undefined && { username }),
  };
  const phone = phone_number === undefined ? {} : { phone_number };
  const { unique } = STRATEGIES[DATABASE];
  const passwordHash = password === undefined ? undefined : await deps.hasher.hash(password);
  try {
    const made = await createUser(deps, {
      identity: { connection, provider: DATABASE, upstreamId, addresses, unique },
      profile: { ...said, ...phone, ...metadata },
      passwordHash,
    });
    if ('user' in made) return { user: made.user, verify: await credentials.load(made.user.id) };
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  const before = await deps.store.collection('identities').get(identityId(connection, upstreamId));
  if (before?.provider !== DATABASE) return undefined;
  if (passwordHash !== undefined) await credentials.setFirst(homeOf(before), passwordHash);
  const user = await deps.store.collection('users').get(before.user_id);
  return user && { user, verify: await credentials.load(user.id, homeOf(before)) };
}
