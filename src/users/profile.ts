// The standard claims of a user by scope (docs/claims.md; OpenID Connect Core §5.4).

import type { Frozen } from '../records/record.ts';
import { PROFILE_CLAIMS, type UserRecord } from '../records/users.ts';

/**
 * The format of `updated_at`: epoch seconds as a number (OpenID Connect Core §5.1) or as a string (the hosted service's
 * documentation), or an ISO 8601 date (as its SDKs expect).
 */
export type UpdatedAt = 'number' | 'text' | 'iso8601';

/** Returns the claims that the scopes include. Claims without a value are left out. */
export function standardClaims(
  user: Frozen<UserRecord>,
  scopes: readonly string[],
  { updatedAt }: { updatedAt: UpdatedAt },
): Record<string, unknown> {
  const claims: Record<string, unknown> = {};
  if (scopes.includes('profile')) {
    for (const claim of PROFILE_CLAIMS) claims[claim] = user[claim];
    claims.nickname ??= defaultNickname(user);
    claims.name ??= user.email ?? user.username ?? user.phone_number;
    claims.updated_at = writtenAs(updatedAt, user.updated_at);
  }
  if (scopes.includes('email') && user.email !== undefined) {
    claims.email = user.email;
    claims.email_verified = user.email_verified;
  }
  if (scopes.includes('phone') && user.phone_number !== undefined) {
    claims.phone_number = user.phone_number;
    claims.phone_number_verified = user.phone_verified === true;
  }
  if (scopes.includes('address')) claims.address = user.address;
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
}

function writtenAs(form: UpdatedAt, date: string): string | number {
  if (form === 'iso8601') return date;
  const seconds = Math.floor(Date.parse(date) / 1000);
  return form === 'number' ? seconds : String(seconds);
}

/** Returns the nickname of a user who has none: the username, else the local part of the e-mail address. */
function defaultNickname(user: Frozen<UserRecord>): string | undefined {
  return user.username ?? user.email?.split('@')[0];
}

/** Returns the name of a user that pages show; the empty string without a user. */
export function nameOf(user: Frozen<UserRecord> | undefined): string {
  return user?.email ?? user?.username ?? user?.name ?? '';
}
