// Records when a user's factors changed and with which token. Tokens end when the factors are changed with another
// token, and sessions are judged by whether their factor may be gone. The last change is kept, and those within a
// token's lifetime.

import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';

/** How long an access token for the MFA API is good, seconds. */
export const API_TOKEN_SECONDS = 600;

export interface FactorChanges {
  /** The id of a user's last change; empty for none. */
  last(userId: string): Promise<string>;
  /** Whether whatever changed since another change was changed by the token of this id. */
  isOwn(userId: string, since: string, by: string): Promise<boolean>;
  /**
   * Makes a change and records it, before and after: nobody who looks while it is made takes it for an old one.
   * @param by the id of the token that it is made with, where there is one.
   */
  around<T>(userId: string, by: string | undefined, change: () => Promise<T>): Promise<T>;
}

/** The changes of a tenant's users. */
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
    isOwn: async (userId, since, by) => {
      const changes = await changesOf(userId);
      // A change that is not found (index -1) is older than all that are kept, so all of them count as later.
      const after = changes.slice(changes.findIndex(({ id }) => id === since) + 1);
      return after.every((change) => change.by === by);
    },
    around: async (userId, by, change) => {
      await record(userId, by);
      try {
        return await change();
      } finally {
        await record(userId, by);
      }
    },
  };
}
