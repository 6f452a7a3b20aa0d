// Continues the removals of connections, APIs and applications that the end of the process interrupted.
import type { Store } from '../../store/contract.ts';
import {
  recordRemoval,
  removalId,
  SLOWLY_REMOVED,
  type SlowlyRemoved,
} from '../../tenant/pending-removals.ts';
import { documentsOf } from './document-resource.ts';

export interface RecordRemovalDependencies {
  store: Store;
  /** ISO 8601. */
  now(): string;
}

export interface PendingRemovals {
  /** Records that a removal begins. Call it before the record is deleted. */
  record(deps: RecordRemovalDependencies, name: string): Promise<void>;
  complete(store: Store, name: string): Promise<void>;
  /**
   * Continues the removals that the end of the process interrupted.
   * @param exists whether the record still exists: the process ended before it was deleted.
   * @param remove removes what is left, and records that the removal is complete.
   */
  resume(
    store: Store,
    exists: (name: string) => Promise<boolean>,
    remove: (name: string) => Promise<void>,
  ): Promise<void>;
}

export function pendingRemovals(collection: SlowlyRemoved): PendingRemovals {
  const { kind, member } = SLOWLY_REMOVED[collection];
  const complete = async (store: Store, name: string) => {
    await store.collection('documents').delete(removalId(collection, name));
  };
  return {
    complete,
    record: ({ store, now }, name) => recordRemoval(store, collection, name, now()),
    resume: async (store, exists, remove) => {
      const names = (await documentsOf(store, kind)).map(({ body }) => String(body[member]));
      // All at once, so that one that fails does not keep the others.
      await Promise.all(
        names.map(async (name) => ((await exists(name)) ? complete(store, name) : remove(name))),
      );
    },
  };
}
