// Reads a token together with its grant and its user in one query, where the store is a remote database. Each
// record read ahead is used once, by the request that reads the token; a second read goes to the store.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ArtifactRecord } from '../../records/engine.ts';
import type { Frozen, Stored } from '../../records/record.ts';
import type { UserRecord } from '../../records/users.ts';
import type { Store } from '../../store/contract.ts';
import type { Users } from '../../users/users.ts';

export interface ReadAhead {
  /** Runs work that begins with reading a token. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Returns an artifact by its key in the store. */
  artifact(key: string): Promise<Frozen<ArtifactRecord> | undefined>;
  /** Returns a user by id. */
  user(id: string): Promise<Frozen<UserRecord> | undefined>;
}

/**
 * Makes the reader of a store.
 * @param users asked when nothing was read ahead: administrators are in a directory of their own.
 */
export function createReadAhead(store: Store, users: Pick<Users, 'get'>): ReadAhead {
  const artifacts = store.collection('artifacts');
  const { getWithNamed } = artifacts;
  if (getWithNamed === undefined)
    return {
      run: (work) => work(),
      artifact: (key) => artifacts.get(key),
      user: (id) => users.get(id),
    };
  const openReads = new AsyncLocalStorage<Map<string, Frozen<Stored>>>();
  const takeRecord = (collection: string, id: string) => {
    const known = openReads.getStore();
    const place = `${collection}\n${id}`;
    const record = known?.get(place);
    known?.delete(place);
    return record;
  };
  return {
    run: (work) => openReads.run(new Map(), work),
    artifact: async (key) => {
      const known = openReads.getStore();
      const before = takeRecord('artifacts', key) as Frozen<ArtifactRecord> | undefined;
      if (before !== undefined || known === undefined) return before ?? artifacts.get(key);
      const found = await getWithNamed(key);
      for (const { collection, record } of found?.named ?? [])
        known.set(`${collection}\n${record.id}`, record);
      return found?.record;
    },
    user: async (id) => (takeRecord('users', id) as Frozen<UserRecord> | undefined) ?? users.get(id),
  };
}
