// One user of an import file: what it may say, what is wrong with it, and what is stored of it.
import { z } from 'zod';
import { normalizeEmail } from '../../records/email.ts';
import type { AddressKind } from '../../records/identities.ts';
import { addressesOfNew } from '../../records/new-identity.ts';
import type { UserRecord } from '../../records/users.ts';
import { type ImportedFactor, importedEmail, importedFactors, importedPhone } from '../imported-factors.ts';
import { judgeBcrypt, judgeHash } from '../imported-hashes/imported-hashes.ts';
import { type EntryError, errorOf } from './entry-error.ts';
import { fromHashExport } from './hash-export.ts';

/** Where in its file a user is. */
export interface Place {
  /** Among the users, from 1. */
  number: number;
  /** The line, from 1, in a file of one user a line. */
  line?: number;
}

/** A user to be imported. */
export interface Entry {
  /** As the file has it. */
  source: Readonly<Record<string, unknown>>;
  /** Where the file has it, if it was read as a whole. */
  place?: Place;
  /** The part of the user's id after the bar. */
  userId?: string;
  addresses: Partial<Record<AddressKind, string>>;
  /** Only what the file says. */
  profile: Partial<UserRecord>;
  passwordHash?: string;
  /** Whether the hash was given in the form that an update takes, too. */
  isCustomHash: boolean;
  factors: readonly ImportedFactor[];
}

/** Members of app_metadata that are the server's own to say. */
const RESERVED = new Set(
  '__tenant _id blocked clientID created_at email email_verified globalClientID global_client_id identities lastIP lastLogin loginsCount metadata multifactor multifactor_last_modified updated_at user_id'.split(
    ' ',
  ),
);

const text = (longest: number) => z.string().min(1).max(longest);
const entrySchema = z.strictObject({
  email: importedEmail.optional(),
  email_verified: z.boolean().optional(),
  phone_number: importedPhone.optional(),
  phone_verified: z.boolean().optional(),
  user_id: z.string().min(1).max(255).regex(/^\S*$/).optional(),
  // An address as a username would answer to somebody else's login by e-mail.
  username: text(128)
    .refine((value) => normalizeEmail(value) === undefined, {
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
    .optional(),
  user_metadata: z.record(z.string(), z.unknown()).optional(),
  mfa_factors: importedFactors.min(1).optional(),
});

/** Members of the schema that are no part of the profile. */
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
 * Reads one user of a file: in the form of import files, or of the hosted service's own export of hashes.
 * @param provider whose prefix an id may have: exports have it.
 */
export function readEntry(value: unknown, provider: string): { entry: Entry } | { errors: EntryError[] } {
  const read = entrySchema.safeParse(fromHashExport(value) ?? value, { reportInput: true });
  if (!read.success) return { errors: read.error.issues.map(errorOf) };
  const { data } = read;
  const addresses: Entry['addresses'] = addressesOfNew(data);
  if (Object.keys(addresses).length === 0) {
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
    const judged = judgeHash(custom);
    if ('hash' in judged) return judged;
    if (judged.issue !== undefined) {
      const error = errorOf(judged.issue);
      return { error: { ...error, path: ['custom_password_hash', error.path].filter(Boolean).join('.') } };
    }
    return { error: hashError(judged.fault, 'custom_password_hash') };
  }
  if (plain === undefined) return undefined;
  const judged = judgeBcrypt(plain);
  if ('hash' in judged) return judged;
  return { error: hashError(judged.fault, 'password_hash') };
}

function hashError(why: string, path: string): EntryError {
  return { code: 'FORMAT', message: why, path, fault: { name: 'hash', values: { why } } };
}

/** A user of a file as an error tells of them: without what proves who they are. */
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
    Object.entries(source).map(([name, value]) => [name, secret.has(name) ? '*****' : value]),
  );
}
