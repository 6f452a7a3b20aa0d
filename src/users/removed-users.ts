// Users who were removed here while a tenant that this one takes the place of was still asked for them. They must not come back
// from there by themselves: neither by their password, nor by a session or a refresh token.
// docs/understand/decisions/moving.md#a-user-who-was-removed-here-does-not-come-back-from-the-old-tenant
import { MOVE } from '../records/tenant/move.ts';
import { epochSeconds } from '../runtime/clock.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Store, Write } from '../store/contract.ts';
import type { UsersDependencies } from './user.ts';

const MODEL = 'RemovedUser';
/** Longer than a move can be open, seconds. */
const REMEMBERED = 400 * 86_400;

const keyOf = (userId: string) => `${MODEL}.sha256:${sha256(userId)}`;

/** Returns what is written with the removal of a user; nothing where there is no move. */
export async function removalWrites(
  { store, clock }: Pick<UsersDependencies, 'store' | 'clock'>,
  userId: string,
): Promise<Write[]> {
  if ((await store.collection('moves').get(MOVE)) === undefined) return [];
  const expiresAt = epochSeconds(clock) + REMEMBERED;
  return [
    {
      collection: 'artifacts',
      put: { id: keyOf(userId), model: MODEL, payload: { at: clock() }, expiresAt },
    },
  ];
}

/** Returns whether a user was removed here since a time. @param since ISO 8601. */
export async function wasRemovedSince(
  store: Pick<Store, 'collection'>,
  userId: string,
  since: string,
): Promise<boolean> {
  const found = await store.collection('artifacts').get(keyOf(userId));
  return found !== undefined && Number(found.payload.at) >= Date.parse(since);
}
