// What one piece of work writes and reads together: a token response is stored in one commit, and a token is read with its
// grant and its user in one query.
//
// Both are ambient: oidc-provider calls our adapter without a place to hand anything on, so an AsyncLocalStorage
// carries the open commit and the records read ahead. Within `inOneCommit` the adapter's writes of grants and access
// tokens are not in the store before the work is done, and within `run` a record may be as old as the read of the
// token. Nothing else uses them: whoever writes to the store itself, there too, writes at once.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Frozen, Stored } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import type { UserRecord } from '../../records/users/users.ts';
import type { Store, Write } from '../../store/contract.ts';
import type { Users } from '../../users/users.ts';

export interface Commits {
  /**
   * Runs a function and stores the grants and tokens that it creates in one commit when it is done, or not at all
   * when it fails.
   * @param also further writes of the same commit.
   */
  inOneCommit<T>(also: readonly Write[], work: () => Promise<T>): Promise<T>;
  /** Adds a write to the commit under way. @returns false when there is none and the caller has to write. */
  add(write: Write): boolean;
}

export function createCommits(store: Store): Commits {
  const openWrites = new AsyncLocalStorage<Write[]>();
  return {
    inOneCommit: async (also, work) => {
      const writes = [...also];
      const result = await openWrites.run(writes, work);
      if (writes.length > 0) await store.batch(writes);
      return result;
    },
    add: (write) => {
      const writes = openWrites.getStore();
      writes?.push(write);
      return writes !== undefined;
    },
  };
}

// Reading ahead, where the store is a remote database. Each record is used once, by the request that reads the
// token; a second read goes to the store.

export interface ReadAhead {
  /** Runs work that begins with reading a token. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Returns an artifact by its key in the store. */
  artifact(key: string): Promise<Frozen<ArtifactRecord> | undefined>;
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
