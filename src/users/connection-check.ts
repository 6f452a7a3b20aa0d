// A new user's connection may be deleted while a password is hashed, a script runs or a provider answers. Deleting it removes
// its users, so a user who is written after that would belong to the next connection with that name.
import { AuthError } from '../http/errors.ts';
import type { Store, Write } from '../store/contract.ts';

/** The connection of a new user, as it was found when the request was judged. */
export interface ExpectedConnection {
  /** The connection's name. */
  connection: string;
  /**
   * The connection's id. Undefined for those that no call deletes while users are created: the administrators' own, and those
   * of a tenant file that is being applied.
   */
  connectionId?: string | undefined;
}

export const expectedConnection = ({ id, name }: { id: string; name: string }) => ({
  connection: name,
  connectionId: id,
});

/**
 * Writes new users in one batch, unless their connection was deleted. The connections are not in the same database as users, so
 * they are read again after the batch: either this sees the deletion, or the deletion sees the users and removes them.
 * @throws AuthError 400 if the connection was deleted; the batch is undone then. UniqueKeyError as {@link Store.batch}.
 */
export async function writeNewUsers(
  store: Store,
  expected: ExpectedConnection,
  writes: readonly Write[],
): Promise<void> {
  if (!(await exists(store, expected))) throw connectionDeleted();
  await store.batch(writes);
  if (await exists(store, expected)) return;
  await store.batch(
    writes.flatMap((write): Write[] =>
      'insert' in write ? [{ collection: write.collection, delete: write.insert.id } as Write] : [],
    ),
  );
  throw connectionDeleted();
}

async function exists(store: Store, { connection, connectionId }: ExpectedConnection): Promise<boolean> {
  if (connectionId === undefined) return true;
  return (await store.collection('connections').get(connectionId))?.name === connection;
}

export function connectionDeleted(): AuthError {
  return new AuthError(400, 'invalid_request', 'The connection does not exist.');
}
