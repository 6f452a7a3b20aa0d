// Removes the users of a deleted connection, who may be many.
import { raiseVersionWith } from '../../users/credentials.ts';
import { pendingRemovals, type RecordRemovalDependencies } from './pending-removal.ts';

export interface RemovalDependencies extends RecordRemovalDependencies {
  removeUser(userId: string): Promise<void>;
  endUnlinked(userId: string, identity: { connection: string }): Promise<void>;
}

/** The removals of connections whose users may be left. */
export const connectionRemovals = pendingRemovals('connections');

/** @param name the connection's. */
export async function removeUsersOf(deps: RemovalDependencies, name: string): Promise<void> {
  for (const { id, user_id } of await deps.store.collection('identities').findBy('connection', name)) {
    const others = await deps.store.collection('identities').findBy('user', user_id);
    // A user with identities of other connections stays, and loses this one. Its sessions end before it is gone, so that they
    // end, too, if the process does in between: they would be those of a later connection with this name.
    if (others.some(({ connection }) => connection !== name)) {
      await deps.endUnlinked(user_id, { connection: name });
      await raiseVersionWith(deps.store, user_id, [{ collection: 'identities', delete: id }]);
    } else await deps.removeUser(user_id);
  }
  await connectionRemovals.complete(deps.store, name);
}

/** Continues the removals that the end of the process interrupted. */
export async function resumeConnectionRemovals(deps: RemovalDependencies): Promise<void> {
  const exists = async (name: string) =>
    (await deps.store.collection('connections').findBy('name', name)).length > 0;
  await connectionRemovals.resume(deps.store, exists, (name) => removeUsersOf(deps, name));
}
