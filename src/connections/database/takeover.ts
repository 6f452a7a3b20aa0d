// Who takes an account over that was made with their address: what its maker would have stay as a way in.
import type { Met } from '../../protection/challenges.ts';
import type { Write } from '../../store/contract.ts';
import type { User } from '../../users/user.ts';
import { ticketOptions } from './ticket-link.ts';

/** Whether a link was made for the user's own address: that of a linked identity says nothing about it. */
export function isForOwn({ email }: User, met: Met): boolean {
  return met.data.email === email;
}

/**
 * Whether a new password by a link may be that of the address's owner, who has not made the account: a ticket that verifies no
 * address may have come to whoever has.
 */
export function mayTakeOver(user: User, met: Met): boolean {
  return isForOwn(user, met) && ticketOptions(met)?.marksVerified !== false;
}

/**
 * The write after which no code is sent to a user's number, where nobody has proved their address: the number may be that of
 * who made the account. Made together with the password, so that a login by the number of before is overtaken.
 */
export function withoutNumber(userId: string): Write {
  return {
    collection: 'users',
    update: userId,
    change: (before) => {
      const isProved = before.email === undefined || before.email_verified;
      return isProved || before.phone_verified !== true ? before : { ...before, phone_verified: false };
    },
  };
}
