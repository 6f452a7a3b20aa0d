// What a login was allowed to do is only done while nothing has ended it: acts of users carry this in their own write,
// because a new password, a block or an end of all access may come between the judgement and the write.
// docs/understand/decisions/sessions-logout.md#an-act-is-judged-again-in-its-own-write
import { AuthError } from '../http/errors.ts';
import type { Write } from '../store/contract.ts';
import type { User } from './user.ts';

/** Whether nothing has ended the logins of a user since a record of them was read. */
export const isStill =
  (judged: User) =>
  (current: User): boolean =>
    (current.blocked === true) === (judged.blocked === true) &&
    current.last_password_reset === judged.last_password_reset &&
    current.access_ended_at === judged.access_ended_at;

/**
 * Returns the write that keeps a batch from being made unless {@link isStill} holds of the user; then it throws
 * AuthError 401 `insufficient_user_authentication` with `max_age` (RFC 9470 §3).
 */
export function stillWrite(judged: User): Write {
  return {
    collection: 'users',
    update: judged.id,
    change: (current) => {
      if (!isStill(judged)(current)) throw loginEnded();
      return current;
    },
  };
}

/**
 * Checks that {@link isStill} holds, before a change elsewhere that no batch contains.
 * @param judged nothing is checked if it is undefined. @throws AuthError as {@link stillWrite}
 */
export async function requireStill(
  users: { get(id: string): Promise<User | undefined> },
  judged: User | undefined,
): Promise<void> {
  if (judged === undefined) return;
  const current = await users.get(judged.id);
  if (current === undefined || !isStill(judged)(current)) throw loginEnded();
}

function loginEnded(): AuthError {
  const extra = { max_age: 0 };
  return new AuthError(401, 'insufficient_user_authentication', 'The login has ended meanwhile.', { extra });
}
