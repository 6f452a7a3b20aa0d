// Somebody else may have made an account with an address: what is taken from its maker when the address's owner sets a password.
import type { Met } from '../../protection/challenges.ts';
import type { Write } from '../../store/contract.ts';
import type { User } from '../../users/user.ts';
import { ticketOptions } from './ticket-link.ts';

/** Whether a link was made for the user's own address: that of a linked identity says nothing about it. */
export function isForOwn({ email }: User, met: Met): boolean {
  return met.data.email === email;
}

/**
 * Whether a new password by a link may be set by the address's owner, who did not make the account. A ticket that verifies no
 * address does not say so: it may have come to the maker.
 */
export function mayTakeOver(user: User, met: Met): boolean {
  return isForOwn(user, met) && ticketOptions(met)?.marksVerified !== false;
}

/**
 * The write that makes a user's number unverified where their address is: the number may be that of whoever made the account,
 * and codes are sent to verified numbers alone. It goes with the write of the password, which also ends a login by such a code
 * that is under way.
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

/** Thrown within a batch, which then changes nothing: the user has another address by now. */
export const MOVED = new Error('the address has changed');

/**
 * The write that fails where a user has another e-mail address by now. It goes with the write of the password: else the owner
 * of the old one would set it for an account that somebody has just moved to an address of theirs.
 */
export function unlessMoved({ id, email }: User): Write {
  return {
    collection: 'users',
    update: id,
    change: (before) => {
      if (before.email !== email) throw MOVED;
      return before;
    },
  };
}
