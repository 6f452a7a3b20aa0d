// Which values may be released to a service provider, which trusts them as the user's identity. An address typed at
// sign-up may be somebody else's until it is verified, and so may any self-chosen value that looks like an address.

import type { Frozen } from '../records/record.ts';
import type { UserRecord } from '../records/users.ts';
import { PROFILE_CLAIMS } from '../records/users.ts';

type User = Frozen<UserRecord>;

/** The user without unverified e-mail address and phone number, so that nothing is derived from them. */
export function withoutUnproved(user: User): User {
  const { email, phone_number, ...others } = user;
  return {
    ...others,
    ...(email !== undefined && user.email_verified ? { email } : {}),
    ...(phone_number !== undefined && user.phone_verified === true ? { phone_number } : {}),
  };
}

/** Fields that users fill in themselves. */
const SELF_ASSERTED = new Set<string>([...PROFILE_CLAIMS, 'address']);

const isSelfAsserted = (field: string) => SELF_ASSERTED.has(field) || field.split('.')[0] === 'user_metadata';

/**
 * Whether a profile value may be released: not when it is self-asserted and looks like an e-mail address.
 * @param field as mappings name it: `nickname`, `user_metadata.team` …
 */
export function isReleasable(user: User, field: string, value: unknown): boolean {
  if (typeof value !== 'string' || !(isSelfAsserted(field) || field === 'username')) return true;
  return isProvedEmail(user, value) || !looksLikeAddress(value);
}

/**
 * Whether a profile value may be the user's NameID: no self-asserted one. A username is unique in its connection.
 */
export function mayBeNameId(user: User, field: string, value: unknown): boolean {
  return !isSelfAsserted(field) || (typeof value === 'string' && isProvedEmail(user, value));
}

function isProvedEmail({ email, email_verified }: User, value: string): boolean {
  return email !== undefined && email_verified && value.toLowerCase() === email.toLowerCase();
}

/** Also with the compatibility forms of `@` (Unicode UAX #15, NFKC); not a handle (`@ada`) or a URL. */
function looksLikeAddress(text: string): boolean {
  const normalized = text.normalize('NFKC').trim();
  return !/^https?:\/\//i.test(normalized) && /[^\s@]@[^\s@]/.test(normalized);
}
