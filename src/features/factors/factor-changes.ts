// Records when a user's factors changed and with which access token. Access tokens end when another token changes
// the factors, and a session whose factor may have been removed has to prove one again. Kept are the last change
// and those within the lifetime of a token.

import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import type { Store } from '../../store/contract.ts';

/** Lifetime of an access token for the MFA API in seconds. */
export const API_TOKEN_SECONDS = 600;

export interface FactorChanges {
  /** Returns the id of a user's last change; empty for none. */
  last(userId: string): Promise<string>;
  /** Returns whether all changes after `since` were made with the token or session `by`. */
  isUnchangedByOthers(userId: string, since: string, by: string): Promise<boolean>;
  /**
   * Makes a change and records it before and after, so that a concurrent reader never takes the old id for the
   * current one.
   * @param by the id of the access token or session that makes the change, if any.
   */
  apply<T>(userId: string, by: string | undefined, change: () => Promise<T>): Promise<T>;
}

/** Returns the changes of factors of a store. */
export function createFactorChanges(deps: { store: Store; clock: Clock; random: Random }): FactorChanges {
  const { store, clock, random } = deps;
  const records = store.collection('factorChanges');
  const changesOf = async (userId: string) => (await records.get(userId))?.changes ?? [];
  const record = (userId: string, by: string | undefined) =>
    records.upsert(userId, (before) => {
      const now = epochSeconds(clock);
      const recent = before?.changes.filter(({ at }) => at >= now - API_TOKEN_SECONDS) ?? [];
      const change = { id: random(12).toString('base64url'), at: now, ...(by === undefined ? {} : { by }) };
      return { id: userId, changes: [...recent, change] };
    });
  return {
    last: async (userId) => (await changesOf(userId)).at(-1)?.id ?? '',
    isUnchangedByOthers: async (userId, since, by) => {
      const changes = await changesOf(userId);
      // A change that is not found (index -1) is older than all that are kept, so all of those are later.
      const after = changes.slice(changes.findIndex(({ id }) => id === since) + 1);
      return after.every((change) => change.by === by);
    },
    apply: async (userId, by, change) => {
      await record(userId, by);
      try {
        return await change();
      } finally {
        await record(userId, by);
      }
    },
  };
}
