// Users who had second factors at an old tenant, none of which moved here.
// docs/understand/decisions/moving.md#a-user-whose-second-factor-does-not-move-is-not-let-in-by-the-password-alone
import { type AuthenticatorRecord, factorsTurn, LEFT_BEHIND } from '../records/users/authenticators.ts';
import { SECOND_FACTORS } from '../records/users/second-factors.ts';
import type { Store, Write } from '../store/contract.ts';
import { takeTurn } from '../store/write-in-turn.ts';
import type { User, UsersDependencies } from './user.ts';

/** What the log says of a user who is not let in. */
export const LEFT_BEHIND_REASON =
  'The user has a second factor at the old tenant and none here: let support remove it in the console, or see gatehouse move in --enrol.';

/** What lists of second factors call the record. */
const NAME = 'at the old tenant';

/** The same for every move, so that a user has one at most. */
export const leftBehindId = (userId: string) => `${LEFT_BEHIND}|${userId}`;

/** Returns the writes that mark a user; their record has `factor_left_behind` already. */
export function leftBehindWrites(
  { clock, random }: Pick<UsersDependencies, 'clock' | 'random'>,
  userId: string,
): Write[] {
  const put: AuthenticatorRecord = {
    id: leftBehindId(userId),
    user_id: userId,
    kind: LEFT_BEHIND,
    active: true,
    name: NAME,
    created_at: new Date(clock()).toISOString(),
  };
  return [takeTurn(factorsTurn(userId), random), { collection: 'authenticators', put }];
}

/** Returns the write that lets a user enrol a factor. */
export const letsEnrolWrite = (userId: string): Write => ({
  collection: 'authenticators',
  delete: leftBehindId(userId),
});

type Factor = Pick<AuthenticatorRecord, 'kind' | 'active'>;

/** Returns whether one is a second factor, and neither a recovery code nor the mark of one that is elsewhere. */
export const isFactor = ({ kind, active }: Factor): boolean =>
  active && kind !== LEFT_BEHIND && kind !== SECOND_FACTORS['recovery-code'].kind;

/** Returns whether a user has a second factor elsewhere that nobody can ask for here, and none here. */
export async function lacksFactor(
  store: Store,
  { id, factor_left_behind: isMarked }: User,
): Promise<boolean> {
  if (isMarked !== true) return false;
  const all = await store.collection('authenticators').findBy('user', id);
  return all.some(({ kind }) => kind === LEFT_BEHIND) && !all.some(isFactor);
}
