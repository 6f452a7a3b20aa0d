// Users and their passwords.
import type { Stored } from '../base/record.ts';

/** The claims of scope `profile` that a user's record contains under the same names. */
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

/** The members of a user's record that describe the person. */
export const IDENTITY_MEMBERS = [
  'email',
  'email_verified',
  'username',
  'phone_number',
  'phone_verified',
  'address',
  ...PROFILE_CLAIMS,
] as const;

/** The members of a user's record that the server maintains. */
export const SERVER_MEMBERS = [
  'created_at',
  'updated_at',
  'last_login',
  'last_ip',
  'logins_count',
  'last_password_reset',
] as const;

/** The members of a user's record that nobody but this server sees: they are in no answer, no file and no profile. */
export const INTERNAL_MEMBERS = [
  'email_history',
  'access_ended_at',
  'factor_left_behind',
  'expiresAt',
] as const satisfies readonly (keyof UserRecord)[];

export type ProfileClaim = (typeof PROFILE_CLAIMS)[number];

/** A user of the tenant. `id` is the `sub`: a strategy, a bar and 24 hex digits, such as `auth0|5f7c…`. */
export interface UserRecord extends Stored {
  email?: string;
  email_verified: boolean;
  username?: string;
  phone_number?: string;
  phone_verified?: boolean;
  name?: string;
  given_name?: string;
  family_name?: string;
  middle_name?: string;
  nickname?: string;
  preferred_username?: string;
  profile?: string;
  picture?: string;
  website?: string;
  gender?: string;
  birthdate?: string;
  zoneinfo?: string;
  locale?: string;
  address?: { country?: string; [part: string]: string | undefined };
  user_metadata: Record<string, unknown>;
  app_metadata: Record<string, unknown>;
  /** Permissions of the user at APIs, which are scopes of APIs with `enforce_policies`. */
  permissions?: { resource_server_identifier: string; permission_name: string }[];
  /** Ids of roles. */
  roles?: string[];
  /** Earlier e-mail addresses, newest last, each with the time until which it was in use, in epoch seconds with a fraction. */
  email_history?: { email?: string; email_verified: boolean; until: number }[];
  blocked?: boolean;
  /** Providers of a second factor that the user must pass whatever the policy. */
  multifactor?: string[];
  /** Set for users who have, or had, an authenticator of the kind `LEFT_BEHIND`, so that it is looked up for them alone. */
  factor_left_behind?: true;
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  updated_at: string;
  /** ISO 8601. */
  last_login?: string;
  last_ip?: string;
  logins_count: number;
  /** ISO 8601. */
  last_password_reset?: string;
  /** When all sessions and tokens of the user were ended last, ISO 8601. */
  access_ended_at?: string;
}

/** A database user's password. `id` is the user's. Only hashes are stored. */
export interface CredentialRecord extends Stored {
  passwordHash: string;
  /** Hashes of earlier passwords, newest first, for the connection's password history. */
  history: string[];
  /** How often the password was set again; not set for never. */
  version?: number;
}
