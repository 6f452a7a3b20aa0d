// Replaces the password of an existing user by an imported hash, unless the user relies on the present one.
import type { Store } from '../../store/contract.ts';
import { emptyCredential, versionOf } from '../credentials.ts';

/** Thrown within a batch, which then changes nothing, if the password is in use. */
const IN_USE = new Error('the password is in use');

/**
 * Replaces the password of a user who has never logged in and has never set a new one; of any other it stays. This is
 * decided with the write: the user may log in or reset the password while the import runs.
 */
export async function replaceUnused(store: Store, userId: string, passwordHash: string): Promise<void> {
  await store.collection('credentials').upsert(userId, (current) => current ?? emptyCredential(userId));
  try {
    await store.batch([
      {
        collection: 'users',
        update: userId,
        change: (current) => {
          if (current.logins_count > 0 || current.last_password_reset !== undefined) throw IN_USE;
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
  } catch (thrown) {
    if (thrown !== IN_USE) throw thrown;
  }
}
