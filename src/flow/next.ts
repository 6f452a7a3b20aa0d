// What a waiting authorization request asks its user for next: decided here, by what is known of it, and nowhere else.
import type { PendingInteraction } from '../engine/interaction.ts';

/** What a request waits for: a proof of who the user is, a second one, the choice of an account, a consent. */
export type Next = 'login' | 'factor' | 'account' | 'consent';

/** What of a request decides. */
export type Undecided = Pick<PendingInteraction, 'prompt' | 'userId' | 'firstFactor'>;

/** What a request asks for next. */
export function next({ prompt, userId, firstFactor }: Undecided): Next {
  if (prompt === 'consent') return 'consent';
  if (firstFactor !== undefined) return 'factor';
  return prompt === 'select_account' && userId !== undefined ? 'account' : 'login';
}

/** Whether the user may log in for the request: instead of keeping an account, too, but not instead of consenting. */
export function waitsForLogin({ prompt }: Pick<Undecided, 'prompt'>): boolean {
  return prompt === 'login' || prompt === 'select_account';
}

/** Whether the user may keep the account that is logged in, though they have begun to log in to another. */
export function mayKeepAccount({ prompt, userId }: Undecided): boolean {
  return next({ prompt, userId, firstFactor: undefined }) === 'account';
}
