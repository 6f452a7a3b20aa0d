// The standard claims of a user by scope (docs/do/claims.md; OpenID Connect Core §5.4).

import { normalizeEmail } from '../records/base/email.ts';
import type { Frozen } from '../records/base/record.ts';
import { type ClaimTarget, type CustomClaim, claimPath } from '../records/users/custom-claims.ts';
import { INTERNAL_MEMBERS, PROFILE_CLAIMS, SERVER_MEMBERS, type UserRecord } from '../records/users/users.ts';
import type { UpstreamUser } from './upstream-user.ts';

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

// docs/understand/decisions/users-linking.md#nickname-and-name-have-defaults-picture-has-none
/** Returns the nickname of a user who has none: the username, else the local part of the e-mail address. */
function defaultNickname(user: Frozen<UserRecord>): string | undefined {
  return user.username ?? user.email?.split('@')[0];
}

/** Returns the name of a user that pages show; the empty string without a user. */
export function nameOf(user: Frozen<UserRecord> | undefined): string {
  return user?.email ?? user?.username ?? user?.name ?? '';
}

// The values of the claims that a tenant declares, computed when a token is issued.

/** The objects that claims take their values from. */
export interface ClaimSources {
  user?: object | undefined;
  client?: object | undefined;
  organization?: object | undefined;
  connection?: object | undefined;
}

/** The token or response that claims are for. */
export interface ClaimsContext {
  to: ClaimTarget;
  clientId: string;
  /** The audience of an access token. */
  audience?: string | undefined;
}

/** Returns the declared claims that belong into a token or response. */
export function claimsFor(
  declared: Frozen<CustomClaim[]>,
  { to, clientId, audience }: ClaimsContext,
): Frozen<CustomClaim[]> {
  return declared.filter(
    (claim) =>
      claim.to.includes(to) &&
      (claim.clients?.includes(clientId) ?? true) &&
      (audience === undefined || (claim.audiences?.includes(audience) ?? true)),
  );
}

/** Returns the value of a claim; undefined if the sources do not have it. */
export function claimValue({ value }: Frozen<CustomClaim>, sources: ClaimSources): unknown {
  let found: unknown = sources;
  for (const member of claimPath(value) ?? []) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found ?? undefined;
}

/**
 * The most characters, as JSON, of all declared claims of a token, and of all claims that actions set. Tokens are sent in
 * redirects, so their length must be limited.
 */
const MAX_CLAIMS_LENGTH = 100_000;

/**
 * Returns the claims that fit together into MAX_CLAIMS_LENGTH characters, in their order. A claim that is too large is skipped.
 * @param onOmitted is called for each skipped claim, with an English description.
 */
export function withinLimit<T>(
  all: readonly T[],
  claimOf: (one: T) => readonly [name: string, value: unknown],
  onOmitted: (what: string) => void,
): T[] {
  let length = 0;
  return all.filter((one) => {
    const claim = claimOf(one);
    const added = JSON.stringify(claim).length;
    if (length + added > MAX_CLAIMS_LENGTH) {
      onOmitted(`${claim[0]} would make more than ${MAX_CLAIMS_LENGTH} characters of claims`);
      return false;
    }
    length += added;
    return true;
  });
}

// The members of a user's record that are copied from an upstream provider's profile.

/** The most characters of an attribute of a profile; longer ones are ignored. */
const MAX_ATTRIBUTE_LENGTH = 2048;

/** The members of a user's record that a provider's profile sets, in the form in which they are stored. */
export type RootProfile = Partial<Omit<UserRecord, 'id' | 'user_metadata' | 'app_metadata'>>;

/** Names of the user's own record, under which no other attribute of a profile may be stored. */
const RESERVED_NAMES = new Set([
  ...PROFILE_CLAIMS,
  ...[
    'email',
    'email_verified',
    'username',
    'phone_number',
    'phone_verified',
    'phone_number_verified',
    'address',
  ],
  ...[
    'id',
    '_id',
    'user_id',
    'identities',
    'user_metadata',
    'app_metadata',
    'blocked',
    'roles',
    'permissions',
  ],
  ...SERVER_MEMBERS,
  ...INTERNAL_MEMBERS,
  ...['multifactor', 'sub', '__proto__', 'constructor', 'prototype'],
]);

function persistent({
  profile,
  nonPersistent,
}: Pick<UpstreamUser, 'profile' | 'nonPersistent'>): [string, unknown][] {
  return Object.entries(profile).filter(([name]) => !nonPersistent.includes(name));
}

/** Returns the other attributes of a profile, which are stored with the identity. */
export function attributesOf(upstream: UpstreamUser): Record<string, unknown> {
  return Object.fromEntries(persistent(upstream).filter(([name]) => !RESERVED_NAMES.has(name)));
}

/** Returns the members of a user's record that a profile sets. */
export function rootProfile(upstream: Pick<UpstreamUser, 'profile' | 'nonPersistent'>): RootProfile {
  const attributes = Object.fromEntries(persistent(upstream));
  const text = (name: string): string | undefined => {
    const value = attributes[name];
    return typeof value === 'string' && value !== '' && value.length <= MAX_ATTRIBUTE_LENGTH
      ? value
      : undefined;
  };
  const claims = PROFILE_CLAIMS.flatMap((name) => {
    const value = text(name);
    return value === undefined ? [] : [[name, value]];
  });
  const address = postalAddress(attributes.address);
  const email = normalizeEmail(text('email') ?? '');
  const phone = text('phone_number');
  const username = text('username');
  return {
    ...Object.fromEntries(claims),
    ...(address !== undefined && { address }),
    ...(username !== undefined && { username }),
    ...(email !== undefined && { email, email_verified: isTrue(attributes.email_verified) }),
    ...(phone !== undefined && {
      phone_number: phone,
      phone_verified: isTrue(attributes.phone_number_verified ?? attributes.phone_verified),
    }),
  };
}

/** The parts of a postal address (OpenID Connect Core §5.1.1). */
const ADDRESS_PARTS = ['formatted', 'street_address', 'locality', 'region', 'postal_code', 'country'];

/** Returns the valid parts of a postal address; undefined if there are none. */
function postalAddress(claim: unknown): UserRecord['address'] {
  if (typeof claim !== 'object' || claim === null) return undefined;
  const parts = Object.entries(claim).filter(
    ([name, value]) =>
      ADDRESS_PARTS.includes(name) &&
      typeof value === 'string' &&
      value !== '' &&
      value.length <= MAX_ATTRIBUTE_LENGTH,
  );
  return parts.length === 0 ? undefined : Object.fromEntries(parts);
}

/** Returns whether a value is true. Some providers send booleans as strings. */
function isTrue(value: unknown): boolean {
  return value === true || value === 'true';
}
