// Removes the users of a deleted connection, who may be many.
import { pendingRemovals, type RecordRemovalDependencies } from './pending-removal.ts';
import { deletePasskeysOf } from './resources/users/user-passkeys-calls.ts';

export interface RemovalDependencies extends RecordRemovalDependencies {
  removeUser(userId: string): Promise<void>;
}

/** The removals of connections whose users may be left. */
export const connectionRemovals = pendingRemovals('connections');

/** @param name the connection's. */
export async function removeUsersOf(deps: RemovalDependencies, name: string): Promise<void> {
  for (const { id, user_id } of await deps.store.collection('identities').findBy('connection', name)) {
    const others = await deps.store.collection('identities').findBy('user', user_id);
    // A user with identities of other connections stays, and loses this identity and its passkeys.
    if (others.some(({ connection }) => connection !== name)) {
      await deps.store.collection('identities').delete(id);
      await deletePasskeysOf(deps.store, user_id, name);
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
