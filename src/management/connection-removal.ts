// Removing a connection takes its users with it, which may be many. The removal is noted before the connection goes, so
// that one cut short is taken up at the next start, and no new connection of that name finds the users of the old one.
import type { Background } from '../runtime/background.ts';
import type { Store } from '../store/contract.ts';
import { apiError } from './errors.ts';
import { documentsOf } from './kept.ts';
import { endPasskeysBy } from './resources/users/passkeys.ts';

export interface RemovalDependencies {
  store: Store;
  background: Background;
  /** Removes a user with all that is theirs. */
  removeUser(userId: string): Promise<void>;
  /** ISO 8601. */
  now(): string;
}

const KIND = 'connection-removal';
const noteId = (name: string) => `${KIND}/${name}`;

/** Notes that a connection is about to go. @param name the connection's. */
export async function noteRemoval(
  { store, now }: Pick<RemovalDependencies, 'store' | 'now'>,
  name: string,
): Promise<void> {
  const at = now();
  await store
    .collection('documents')
    .put({ id: noteId(name), kind: KIND, body: { name }, created_at: at, updated_at: at });
}

/** Removes the users of a connection that is gone, in the background. @param name the connection's. */
export function removeUsersOf(deps: RemovalDependencies, name: string): void {
  deps.background.run('the removal of the users of a connection', async () => {
    for (const { id, user_id } of await deps.store.collection('identities').findBy('connection', name)) {
      const others = await deps.store.collection('identities').findBy('user', user_id);
      // A user who comes by other connections, too, stays, and comes by those.
      if (others.some(({ connection }) => connection !== name)) {
        await deps.store.collection('identities').delete(id);
        await endPasskeysBy(deps.store, user_id, name);
      } else await deps.removeUser(user_id);
    }
    await deps.store.collection('documents').delete(noteId(name));
  });
}

/** Takes up the removals that were cut short. */
export async function resumeRemovals(deps: RemovalDependencies): Promise<void> {
  for (const { id, body } of await documentsOf(deps.store, KIND)) {
    const [connection] = await deps.store.collection('connections').findBy('name', String(body.name));
    // It was noted, and the connection itself never removed.
    if (connection !== undefined) await deps.store.collection('documents').delete(id);
    else removeUsersOf(deps, String(body.name));
  }
}

/** @throws AuthError 409 while users of a removed connection of that name are still there. */
export async function refuseWhileRemoved(store: Store, name: string): Promise<void> {
  if ((await store.collection('documents').get(noteId(name))) === undefined) return;
  throw apiError(409, 'A connection with the same name is being deleted, try again later');
}
