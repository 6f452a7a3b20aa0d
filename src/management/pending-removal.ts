// Records of removals that take longer than the request that causes them. A record is stored before the connection or
// API is deleted. With it, an interrupted removal continues at the next start, and no new connection or API can take
// the name while parts of the old one are left.
import type { Store } from '../store/contract.ts';
import { documentsOf } from './document-resource.ts';
import { apiError } from './errors.ts';

/** What is needed to record a removal. */
export interface RecordRemovalDependencies {
  store: Store;
  /** ISO 8601. */
  now(): string;
}

/** The recorded removals of one kind. */
export interface PendingRemovals {
  /** Records that a removal begins. Call it before the connection or API is deleted. */
  record(deps: RecordRemovalDependencies, name: string): Promise<void>;
  /** Records that a removal is complete. */
  complete(store: Store, name: string): Promise<void>;
  /**
   * Continues the removals that the end of the process interrupted.
   * @param exists whether the connection or API still exists: the process ended before it was deleted.
   */
  resume(
    store: Store,
    exists: (name: string) => Promise<boolean>,
    remove: (name: string) => void | Promise<void>,
  ): Promise<void>;
  /** Refuses a new connection or API while the removal of an old one is pending. @throws AuthError 409 */
  refuseWhilePending(store: Store, name: string): Promise<void>;
}

/**
 * Makes the removals of one kind.
 * @param kind the kind of the documents.
 * @param member the member of the document that has the name.
 * @param noun what is removed, for the message of a refusal.
 */
export function pendingRemovals(kind: string, member: 'name' | 'identifier', noun: string): PendingRemovals {
  const idOf = (name: string) => `${kind}/${name}`;
  const complete = async (store: Store, name: string) => {
    await store.collection('documents').delete(idOf(name));
  };
  return {
    complete,
    record: async ({ store, now }, name) => {
      const at = now();
      await store
        .collection('documents')
        .put({ id: idOf(name), kind, body: { [member]: name }, created_at: at, updated_at: at });
    },
    resume: async (store, exists, remove) => {
      for (const { body } of await documentsOf(store, kind)) {
        const name = String(body[member]);
        if (await exists(name)) await complete(store, name);
        else await remove(name);
      }
    },
    refuseWhilePending: async (store, name) => {
      if ((await store.collection('documents').get(idOf(name))) === undefined) return;
      throw apiError(409, `A ${noun} with the same ${member} is being deleted, try again later`);
    },
  };
}
