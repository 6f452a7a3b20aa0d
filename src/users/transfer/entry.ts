// Parses one user of an import file.
import { z } from 'zod';
import { lookupEmail } from '../../records/base/email.ts';
import type { AddressKind } from '../../records/connections/identities.ts';
import { addressesOfNew } from '../../records/new-identity.ts';
import type { UserRecord } from '../../records/users/users.ts';
import { MAX_METADATA_LENGTH } from '../changes.ts';
import { type ImportedFactor, importedEmail, importedFactors, importedPhone } from '../imported-factors.ts';
import { checkBcrypt, checkHash } from '../imported-hashes/imported-hashes.ts';
import { type EntryError, errorOf } from './entry-error.ts';

// docs/understand/decisions/users-linking.md#errors-of-an-import-name-the-users-position-and-the-fault-if-asked-to
/** The position of a user in the file. */
export interface Place {
  /** The number of the user, from 1. */
  number: number;
  /** The line, from 1, in a file with one user per line. */
  line?: number;
}

/** A user to be imported. */
export interface Entry {
  /** The object in the file. */
  source: Readonly<Record<string, unknown>>;
  /** Its position, if the file was read as a whole. */
  place?: Place;
  /** The part of the user's id after the bar. */
  userId?: string;
  addresses: Partial<Record<AddressKind, string>>;
  /** Only the members that the file has. */
  profile: Partial<UserRecord>;
  passwordHash?: string;
  /** Whether the hash is a `custom_password_hash`, the only form that can also update a user. */
  isCustomHash: boolean;
  factors: readonly ImportedFactor[];
}

/** Members that app_metadata must not have, because the server sets them. */
export const RESERVED = new Set(
  '__tenant _id blocked clientID created_at email email_verified globalClientID global_client_id identities lastIP lastLogin loginsCount metadata multifactor multifactor_last_modified updated_at user_id'.split(
    ' ',
  ),
);

const text = (maxLength: number) => z.string().min(1).max(maxLength);
/** The check of metadata, and what is wrong with larger one. */
const within = (member: keyof typeof MAX_METADATA_LENGTH) =>
  [
    (value: object) => JSON.stringify(value).length <= MAX_METADATA_LENGTH[member],
    `${member} has at most ${MAX_METADATA_LENGTH[member]} characters as JSON`,
  ] as const;
const entrySchema = z.strictObject({
  email: importedEmail.optional(),
  email_verified: z.boolean().optional(),
  phone_number: importedPhone.optional(),
  phone_verified: z.boolean().optional(),
  user_id: z.string().min(1).max(255).regex(/^\S*$/).optional(),
  // A username in the form of an e-mail address would be found by a login of the owner of that address.
  username: text(128)
    .refine((value) => lookupEmail(value) === undefined, {
      params: { fault: 'username' },
      message: 'A username must be no e-mail address',
    })
    .optional(),
  given_name: text(150).optional(),
  family_name: text(150).optional(),
  middle_name: text(150).optional(),
  name: text(300).optional(),
  nickname: text(300).optional(),
  preferred_username: text(150).optional(),
  picture: z.url().max(2048).optional(),
  profile: z.url().max(2048).optional(),
  website: z.url().max(2048).optional(),
  gender: text(64).optional(),
  birthdate: z
    .string()
    .regex(/^\d{4}(-\d{2}-\d{2})?$/)
    .optional(),
  zoneinfo: text(64).optional(),
  locale: text(64).optional(),
  address: z.record(z.string().max(64), z.string().max(1024)).optional(),
  blocked: z.boolean().optional(),
  password_hash: z.string().optional(),
  custom_password_hash: z.unknown().optional(),
  app_metadata: z
    .record(z.string(), z.unknown())
    .refine((value) => !Object.keys(value).some((name) => RESERVED.has(name)), {
      params: { fault: 'reserved' },
      message: `app_metadata must not have ${[...RESERVED].join(', ')}`,
    })
    .refine(...within('app_metadata'))
    .optional(),
  user_metadata: z
    .record(z.string(), z.unknown())
    .refine(...within('user_metadata'))
    .optional(),
  mfa_factors: importedFactors.min(1).optional(),
});

/** Members of the schema that are not part of the profile. */
const NO_PROFILE = new Set([
  'email',
  'username',
  'phone_number',
  'user_id',
  'password_hash',
  'custom_password_hash',
  'mfa_factors',
]);

/**
 * Parses one user of a file, in the format of import files or of the hosted service's export of password hashes.
 * @param provider the strategy; its prefix is removed from ids, as exports have it.
 */
export function readEntry(value: unknown, provider: string): { entry: Entry } | { errors: EntryError[] } {
  const parsed = entrySchema.safeParse(fromHashExport(value) ?? value, { reportInput: true });
  if (!parsed.success) return { errors: parsed.error.issues.map(errorOf) };
  const { data } = parsed;
  const addresses: Entry['addresses'] = addressesOfNew(data);
  if (Object.keys(addresses).length === 0) {
    // docs/understand/decisions/users-linking.md#a-user-in-an-import-file-needs-an-e-mail-address-a-username-or-a-phone-number
    const message = 'One of email, username, phone_number is required';
    return { errors: [{ code: 'ANY_OF_MISSING', message, fault: { name: 'noAddress' } }] };
  }
  const hash = hashOf(data);
  if (hash !== undefined && 'error' in hash) return { errors: [hash.error] };
  const profile = Object.fromEntries(Object.entries(data).filter(([name]) => !NO_PROFILE.has(name)));
  return {
    entry: {
      source: value as Record<string, unknown>,
      ...(data.user_id !== undefined && { userId: withoutPrefix(data.user_id, provider) }),
      addresses,
      profile: profile as Partial<UserRecord>,
      ...(hash !== undefined && { passwordHash: hash.hash }),
      isCustomHash: data.custom_password_hash !== undefined,
      factors: data.mfa_factors ?? [],
    },
  };
}

function withoutPrefix(id: string, provider: string): string {
  const prefix = `${provider}|`;
  return id.startsWith(prefix) && id.length > prefix.length ? id.slice(prefix.length) : id;
}

function hashOf(data: z.output<typeof entrySchema>): { hash: string } | { error: EntryError } | undefined {
  const { password_hash: plain, custom_password_hash: custom } = data;
  if (plain !== undefined && custom !== undefined) {
    const message = 'password_hash and custom_password_hash are not given together';
    const fault = { name: 'twoHashes' } as const;
    return { error: { code: 'NOT_PASSED', message, path: 'custom_password_hash', fault } };
  }
  if (custom !== undefined) {
    const checked = checkHash(custom);
    if ('hash' in checked) return checked;
    if (checked.issue !== undefined) {
      const error = errorOf(checked.issue);
      return { error: { ...error, path: ['custom_password_hash', error.path].filter(Boolean).join('.') } };
    }
    return { error: hashError(checked.fault, 'custom_password_hash') };
  }
  if (plain === undefined) return undefined;
  const checked = checkBcrypt(plain);
  if ('hash' in checked) return checked;
  return { error: hashError(checked.fault, 'password_hash') };
}

function hashError(why: string, path: string): EntryError {
  return { code: 'FORMAT', message: why, path, fault: { name: 'hash', values: { why } } };
}

/** What providers have given to a user's identity: `access_token`, `access_token_secret`, `refresh_token` … */
const OF_PROVIDER = /token|secret/i;

/** Returns a user of a file for an error, with hashes and second factors masked, and without the tokens of identities. */
export function withoutSecrets(source: unknown): Record<string, unknown> {
  if (typeof source !== 'object' || source === null) return {};
  const secret = new Set([
    'password_hash',
    'custom_password_hash',
    'mfa_factors',
    'passwordHash',
    'password',
  ]);
  return Object.fromEntries(
    Object.entries(source).map(([name, value]) => {
      if (name === 'identities' && Array.isArray(value)) return [name, value.map(withoutTokens)];
      return [name, secret.has(name) ? '*****' : value];
    }),
  );
}

/** Left out, not masked: a mended line is read again, and must not bring the mask as a token. */
function withoutTokens(identity: unknown): unknown {
  if (typeof identity !== 'object' || identity === null || Array.isArray(identity)) return identity;
  return Object.fromEntries(Object.entries(identity).filter(([name]) => !OF_PROVIDER.test(name)));
}

// The hosted service's export of password hashes, which its support provides: one user per line.

const identifier = z.looseObject({ type: z.string(), value: z.string(), verified: z.boolean().optional() });

const exported = z.looseObject({
  _id: z.looseObject({ $oid: z.string() }),
  alt_id: z.string().optional(),
  email: z.string().nullish(),
  email_verified: z.boolean().nullish(),
  username: z.string().nullish(),
  passwordHash: z.string().nullish(),
  identifiers: z.array(identifier).nullish(),
});

/**
 * Converts such a line to the format of import files. The id is `alt_id` if there is one. Members that do not apply here
 * (tenant, connection, dates) are left out.
 * @returns undefined if the value is not such a line.
 */
function fromHashExport(value: unknown): Record<string, unknown> | undefined {
  const read = exported.safeParse(value);
  if (!read.success) return undefined;
  const { _id, alt_id, email, email_verified, username, passwordHash, identifiers } = read.data;
  const by = (type: string) => identifiers?.find((one) => one.type === type);
  const phone = by('phone') ?? by('phone_number');
  return withoutEmpty({
    user_id: alt_id ?? _id.$oid,
    email: email ?? by('email')?.value,
    email_verified: email_verified ?? by('email')?.verified,
    username: username ?? by('username')?.value,
    phone_number: phone?.value,
    phone_verified: phone?.verified,
    password_hash: passwordHash,
  });
}

function withoutEmpty(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null),
  );
}
