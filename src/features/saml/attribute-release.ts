// Which values may be released to a service provider, which trusts them as the user's identity. An address typed at
// sign-up may be somebody else's until it is verified, and so may any self-chosen value that looks like an address.

import { isSameEmail } from '../../records/base/email.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { UserRecord } from '../../records/users/users.ts';
import { PROFILE_CLAIMS } from '../../records/users/users.ts';

type User = Frozen<UserRecord>;

/** Returns the user without unverified e-mail address and phone number, so that nothing is derived from them. */
export function withoutUnproved(user: User): User {
  const { email, phone_number, ...others } = user;
  return {
    ...others,
    ...(email !== undefined && user.email_verified ? { email } : {}),
    ...(phone_number !== undefined && user.phone_verified === true ? { phone_number } : {}),
  };
}

/** Members that users set themselves. */
const SELF_ASSERTED = new Set<string>([...PROFILE_CLAIMS, 'address']);

const isSelfAsserted = (field: string) => SELF_ASSERTED.has(field) || field.split('.')[0] === 'user_metadata';

/**
 * Returns whether a profile value may be released: a self-asserted one must not look like an e-mail address.
 * @param field as mappings name it: `nickname`, `user_metadata.team` …
 */
export function isReleasable(user: User, field: string, value: unknown): boolean {
  if (typeof value !== 'string' || !(isSelfAsserted(field) || field === 'username')) return true;
  return isProvedEmail(user, value) || !looksLikeAddress(value);
}

/** Returns whether a profile value may be the NameID: not a self-asserted one. Usernames are unique in a connection. */
export function mayBeNameId(user: User, field: string, value: unknown): boolean {
  return !isSelfAsserted(field) || (typeof value === 'string' && isProvedEmail(user, value));
}

function isProvedEmail({ email, email_verified }: User, value: string): boolean {
  return email !== undefined && email_verified && isSameEmail(value, email);
}

/**
 * Returns whether a text looks like an address, also with the compatibility forms of `@` (Unicode UAX #15, NFKC); a
 * handle (`@ada`) or a URL does not.
 */
function looksLikeAddress(text: string): boolean {
  const normalized = text.normalize('NFKC').trim();
  return !/^https?:\/\//i.test(normalized) && /[^\s@]@[^\s@]/.test(normalized);
}
