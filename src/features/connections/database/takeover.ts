// An account may have been created with somebody else's e-mail address. When the owner of that address sets a password by a
// mailed link, whoever created the account loses access to it.
import type { VerifiedChallenge } from '../../../capabilities/protection/challenges.ts';
import type { Write } from '../../../store/contract.ts';
import type { User } from '../../../users/user.ts';
import { ticketOptions } from './ticket-link.ts';

/** Returns whether a link was issued for the user's own address, rather than for that of a linked identity. */
export function isForOwnAddress({ email }: User, verifiedChallenge: VerifiedChallenge): boolean {
  return verifiedChallenge.data.email === email;
}

/**
 * Returns whether the user of a link may be the owner of the address without having created the account. Not so for a ticket
 * that does not verify the address: whoever created the account may have received it.
 */
export function mayTakeOver(user: User, verifiedChallenge: VerifiedChallenge): boolean {
  return (
    isForOwnAddress(user, verifiedChallenge) && ticketOptions(verifiedChallenge)?.marksVerified !== false
  );
}

/**
 * Returns the write that marks the phone number of a user with an unverified address as unverified. The number may belong to
 * whoever created the account, and codes are sent only to verified numbers. It is made in one batch with the new password,
 * which also ends a login by code that has begun.
 */
export function unverifyNumber(userId: string): Write {
  return {
    collection: 'users',
    update: userId,
    change: (before) => {
      const isProved = before.email === undefined || before.email_verified;
      return isProved || before.phone_verified !== true ? before : { ...before, phone_verified: false };
    },
  };
}

/** Thrown within a batch, which then changes nothing, if the user's address has changed. */
export const ADDRESS_CHANGED = new Error('the address has changed');

/**
 * Returns a write that throws {@link ADDRESS_CHANGED} if the user's e-mail address is no longer the given one. It is made in
 * one batch with the new password: otherwise the owner of the old address could set the password of an account whose address
 * was changed a moment before.
 */
export function unlessAddressChanged({ id, email }: User): Write {
  return {
    collection: 'users',
    update: id,
    change: (before) => {
      if (before.email !== email) throw ADDRESS_CHANGED;
      return before;
    },
  };
}
