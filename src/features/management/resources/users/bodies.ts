// The bodies that create and change users.

import { z } from 'zod';
import { emailSchema } from '../../../../records/email.ts';
import { MAX_METADATA_LENGTH } from '../../../../users/metadata-bounds.ts';
import { withJsonLength } from '../../body-size.ts';

const metadata = z.record(z.string(), z.unknown());
const text = (longest: number) => z.string().min(1).max(longest);

/** Claims of OpenID Connect Core §5.1 that the hosted service's user records do not have. */
const standardClaims = {
  middle_name: text(150).nullish(),
  preferred_username: text(150).nullish(),
  profile: z.url().max(2048).nullish(),
  website: z.url().max(2048).nullish(),
  gender: text(64).nullish(),
  birthdate: z
    .string()
    .regex(/^(\d{4})(-\d{2}-\d{2})?$/, 'must be YYYY-MM-DD or YYYY')
    .nullish(),
  zoneinfo: text(64).nullish(),
  locale: text(64).nullish(),
  address: z.record(z.string().max(64), z.string().max(1024)).nullish(),
};

const profile = {
  given_name: text(150).nullish(),
  family_name: text(150).nullish(),
  name: text(300).nullish(),
  nickname: text(300).nullish(),
  picture: z.url().max(2048).nullish(),
  user_metadata: withJsonLength(metadata, MAX_METADATA_LENGTH.user_metadata).nullish(),
  app_metadata: withJsonLength(metadata, MAX_METADATA_LENGTH.app_metadata).nullish(),
  blocked: z.boolean().nullish(),
  email_verified: z.boolean().nullish(),
  phone_verified: z.boolean().nullish(),
  verify_email: z.boolean().nullish(),
  ...standardClaims,
};

const identifiers = {
  email: emailSchema.nullish(),
  phone_number: z
    .string()
    .regex(/^\+[0-9]{1,15}$/, "Object didn't pass validation for format phone: must match ^\\+[0-9]{1,15}$")
    .nullish(),
  username: text(128).nullish(),
  password: text(1024).nullish(),
};

export const createUserBody = z.strictObject({
  ...profile,
  ...identifiers,
  connection: text(128),
  user_id: z.string().min(1).max(255).regex(/^\S*$/, 'must hold no spaces').nullish(),
});

export const patchUserBody = z.strictObject({
  ...profile,
  ...identifiers,
  connection: text(128).nullish(),
  client_id: text(255).nullish(),
  verify_phone_number: z.boolean().nullish(),
  verify_password: z.boolean().nullish(),
});

export type CreateUserBody = z.output<typeof createUserBody>;
export type PatchUserBody = z.output<typeof patchUserBody>;

/** The members that are stored as they are sent. */
export const PROFILE_MEMBERS = [
  'given_name',
  'family_name',
  'name',
  'nickname',
  'picture',
  'blocked',
  'email_verified',
  'phone_verified',
  ...(Object.keys(standardClaims) as (keyof typeof standardClaims)[]),
] as const;

/** Returns metadata merged at the first level: null removes a key, an empty object removes all. */
export function mergedMetadata(
  before: Readonly<Record<string, unknown>>,
  patch: Readonly<Record<string, unknown>> | null | undefined,
): Record<string, unknown> {
  if (patch === undefined) return { ...before };
  if (patch === null || Object.keys(patch).length === 0) return {};
  return Object.fromEntries(Object.entries({ ...before, ...patch }).filter(([, value]) => value !== null));
}
