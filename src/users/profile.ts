// The standard claims of a user by scope (docs/claims.md; OpenID Connect Core §5.4).

import type { Frozen } from '../records/record.ts';
import { PROFILE_CLAIMS, type UserRecord } from '../records/users.ts';

/**
 * How `updated_at` is written: epoch seconds as a number (OpenID Connect Core §5.1) or as text (the hosted
 * service's documents), or a date of ISO 8601 (what its SDKs read).
 */
export type UpdatedAt = 'number' | 'text' | 'iso8601';

/** The claims that scopes give of a user; what is not set is left out. */
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

/** As the hosted service has it: the local part of the address, or the username. */
function defaultNickname(user: Frozen<UserRecord>): string | undefined {
  return user.username ?? user.email?.split('@')[0];
}

/** What a page calls a user; empty for nobody. */
export function nameOf(user: Frozen<UserRecord> | undefined): string {
  return user?.email ?? user?.username ?? user?.name ?? '';
}
