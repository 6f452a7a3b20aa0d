// Replaces the password of an existing user by an imported hash, unless the user relies on the present one; and decides
// whether an import may verify the address of an existing user.
import type { Store } from '../../store/contract.ts';
import { emptyCredential, NO_PASSWORD, versionOf } from '../credentials.ts';
import type { User } from '../user.ts';

/** Thrown within a batch, which then changes nothing, if the password is in use. */
const IN_USE = new Error('the password is in use');

/**
 * Replaces the password of a user who has never logged in and has never set a new one; of any other it stays. This is
 * decided with the write: the user may log in or reset the password while the import runs.
 * @returns whether the password was replaced.
 */
export async function replaceUnused(store: Store, userId: string, passwordHash: string): Promise<boolean> {
  await store.collection('credentials').upsert(userId, (current) => current ?? emptyCredential(userId));
  try {
    await store.batch([
      {
        collection: 'users',
        update: userId,
        change: (current) => {
          if (isUsed(current)) throw IN_USE;
          return current;
        },
      },
      {
        collection: 'credentials',
        update: userId,
        change: (current) => ({
          ...current,
          passwordHash,
          version: versionOf(current) + (current.passwordHash === passwordHash ? 0 : 1),
        }),
      },
    ]);
    return true;
  } catch (thrown) {
    if (thrown !== IN_USE) throw thrown;
    return false;
  }
}

/**
 * Returns whether nobody can log in to a user's account with anything that whoever created it had set: a password, a
 * passkey, a verified phone number, to which codes are sent, or a session. A login that an action refused, or that was
 * never completed, does not count as one, but the passkey or number of its sign-up is there.
 * @param imported what of the account the import has set itself.
 */
export async function isOpenToNobody(
  store: Store,
  { id }: Pick<User, 'id'>,
  imported: { password: boolean; phoneNumber: boolean },
): Promise<boolean> {
  const [user, credential, passkeys] = await Promise.all([
    store.collection('users').get(id),
    store.collection('credentials').get(id),
    store.collection('passkeys').findBy('user', id),
  ]);
  if (user === undefined || passkeys.length > 0) return false;
  if (user.phone_verified === true && !imported.phoneNumber) return false;
  return imported.password || (!isUsed(user) && (credential?.passwordHash ?? NO_PASSWORD) === NO_PASSWORD);
}

/** Returns whether somebody has logged in to an account, or has set a new password. */
function isUsed({
  logins_count: logins,
  last_password_reset: reset,
}: Pick<User, 'logins_count' | 'last_password_reset'>) {
  return logins > 0 || reset !== undefined;
}
