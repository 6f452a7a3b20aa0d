// Stores what a token response creates in one commit: its grant, its tokens, and the record of the login.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Store, Write } from '../../store/contract.ts';

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

/** Makes the commits of one engine. */
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
