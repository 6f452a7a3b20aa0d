// What of a user may be said to a service provider, which takes it for the user's identity. An address that
// somebody typed at sign-up is anybody's until it was proved, and so is whatever looks like one.

import type { Frozen } from '../records/record.ts';
import type { UserRecord } from '../records/users.ts';
import { PROFILE_CLAIMS } from '../users/profile.ts';

type User = Frozen<UserRecord>;

/** The user without the e-mail address and phone number that were not proved, so that nothing is derived from them. */
export function withoutUnproved(user: User): User {
  const { email, phone_number, ...others } = user;
  return {
    ...others,
    ...(email !== undefined && user.email_verified ? { email } : {}),
    ...(phone_number !== undefined && user.phone_verified === true ? { phone_number } : {}),
  };
}

/** Fields that people fill in as they like. */
const SELF_ASSERTED = new Set<string>([...PROFILE_CLAIMS, 'address']);

const isSelfAsserted = (field: string) => SELF_ASSERTED.has(field) || field.split('.')[0] === 'user_metadata';

/**
 * Whether a value of the profile may be told: not when it was chosen freely and reads as somebody's address.
 * @param field as mappings name it: `nickname`, `user_metadata.team` …
 */
export function isTellable(user: User, field: string, value: unknown): boolean {
  if (typeof value !== 'string' || !(isSelfAsserted(field) || field === 'username')) return true;
  return isProvedEmail(user, value) || !readsAsAddress(value);
}

/**
 * Whether a value of the profile may name its user (NameID): not what they chose freely. A username is one per
 * connection.
 */
export function mayName(user: User, field: string, value: unknown): boolean {
  return !isSelfAsserted(field) || (typeof value === 'string' && isProvedEmail(user, value));
}

function isProvedEmail({ email, email_verified }: User, value: string): boolean {
  return email !== undefined && email_verified && value.toLowerCase() === email.toLowerCase();
}

/** In any of the forms that a reader may fold into an @ (Unicode UAX #15, NFKC); a handle or a URL is none. */
function readsAsAddress(text: string): boolean {
  const folded = text.normalize('NFKC').trim();
  return !/^https?:\/\//i.test(folded) && /[^\s@]@[^\s@]/.test(folded);
}
