// Removes the users of a deleted connection, who may be many, in the background. A document that names the connection
// is stored before the connection is deleted. With it, an interrupted removal continues at the next start, and no new
// connection can take the name while users of the old one are left.
import type { Background } from '../runtime/background.ts';
import type { Store } from '../store/contract.ts';
import { documentsOf } from './document-resource.ts';
import { apiError } from './errors.ts';
import { endPasskeysBy } from './resources/users/passkeys.ts';

export interface RemovalDependencies {
  store: Store;
  background: Background;
  /** Removes a user and everything that belongs to the user. */
  removeUser(userId: string): Promise<void>;
  /** ISO 8601. */
  now(): string;
}

const KIND = 'connection-removal';
const removalId = (name: string) => `${KIND}/${name}`;

/**
 * Stores that the users of a connection are to be removed. Call it before the connection is deleted.
 * @param name the connection's.
 */
export async function announceRemoval(
  { store, now }: Pick<RemovalDependencies, 'store' | 'now'>,
  name: string,
): Promise<void> {
  const at = now();
  await store
    .collection('documents')
    .put({ id: removalId(name), kind: KIND, body: { name }, created_at: at, updated_at: at });
}

/** Starts to remove the users of a deleted connection in the background. @param name the connection's. */
export function removeUsersOf(deps: RemovalDependencies, name: string): void {
  deps.background.run('the removal of the users of a connection', async () => {
    for (const { id, user_id } of await deps.store.collection('identities').findBy('connection', name)) {
      const others = await deps.store.collection('identities').findBy('user', user_id);
      // A user with identities of other connections stays, and loses this identity and its passkeys.
      if (others.some(({ connection }) => connection !== name)) {
        await deps.store.collection('identities').delete(id);
        await endPasskeysBy(deps.store, user_id, name);
      } else await deps.removeUser(user_id);
    }
    await deps.store.collection('documents').delete(removalId(name));
  });
}

/** Continues the removals that the end of the process interrupted. */
export async function resumeRemovals(deps: RemovalDependencies): Promise<void> {
  for (const { id, body } of await documentsOf(deps.store, KIND)) {
    const [connection] = await deps.store.collection('connections').findBy('name', String(body.name));
    // The process ended before the connection itself was deleted.
    if (connection !== undefined) await deps.store.collection('documents').delete(id);
    else removeUsersOf(deps, String(body.name));
  }
}

/** Refuses to create a connection while users of a deleted one of that name are left. @throws AuthError 409 */
export async function refuseWhileUsersRemain(store: Store, name: string): Promise<void> {
  if ((await store.collection('documents').get(removalId(name))) === undefined) return;
  throw apiError(409, 'A connection with the same name is being deleted, try again later');
}
