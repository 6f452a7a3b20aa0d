// The standard claims of a user by scope (spec "User profile"; OpenID Connect Core §5.4).
import type { UserRecord } from '../store/collections.ts';
import type { Frozen } from '../store/contract.ts';

/** The claims of scope `profile` that a user's record holds as they are. */
export const PROFILE_CLAIMS = [
  'name',
  'family_name',
  'given_name',
  'middle_name',
  'nickname',
  'preferred_username',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
] as const;

/**
 * The claims that scopes give of a user; what is not set is left out.
 * @param options.oidcConformant `updated_at` as ISO 8601 rather than a string of epoch seconds (wire.md "Decided").
 */
export function standardClaims(
  user: Frozen<UserRecord>,
  scopes: readonly string[],
  { oidcConformant }: { oidcConformant: boolean },
): Record<string, unknown> {
  const claims: Record<string, unknown> = {};
  if (scopes.includes('profile')) {
    for (const claim of PROFILE_CLAIMS) claims[claim] = user[claim];
    claims.nickname ??= defaultNickname(user);
    claims.name ??= user.email ?? user.username ?? user.phone_number;
    claims.updated_at = oidcConformant
      ? user.updated_at
      : String(Math.floor(Date.parse(user.updated_at) / 1000));
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

/** As the hosted service has it: the local part of the address, or the username. */
function defaultNickname(user: Frozen<UserRecord>): string | undefined {
  return user.username ?? user.email?.split('@')[0];
}

/** What a page calls a user; empty for nobody. */
export function nameOf(user: Frozen<UserRecord> | undefined): string {
  return user?.email ?? user?.username ?? user?.name ?? '';
}
