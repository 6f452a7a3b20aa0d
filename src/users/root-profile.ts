// The members of a user's record that are copied from an upstream provider's profile.
import { normalizeEmail } from '../records/email.ts';
import type { UserRecord } from '../records/users.ts';
import { PROFILE_CLAIMS, SERVER_MEMBERS } from '../records/users.ts';
import type { UpstreamUser } from './upstream-user.ts';

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
  ...[
    'multifactor',
    'email_history',
    'access_ended_at',
    'expiresAt',
    'sub',
    '__proto__',
    'constructor',
    'prototype',
  ],
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
