// Who the users are, and what they prove it by.
import type { Stored } from './record.ts';

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

/** What a user's record says of who they are, and nothing of what we do with it. */
export const IDENTITY_MEMBERS = [
  'email',
  'email_verified',
  'username',
  'phone_number',
  'phone_verified',
  'address',
  ...PROFILE_CLAIMS,
] as const;

/** What the server itself notes in a user's record. */
export const NOTED_MEMBERS = [
  'created_at',
  'updated_at',
  'last_login',
  'last_ip',
  'logins_count',
  'last_password_reset',
] as const;

export type ProfileClaim = (typeof PROFILE_CLAIMS)[number];

/** A user of the tenant; `id` is the `sub`: strategy, bar, 24 hex digits, such as `auth0|5f7c…`. */
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
  /** What the user may do at an API (management vocabulary); scopes of an API with `enforce_policies`. */
  permissions?: { resource_server_identifier: string; permission_name: string }[];
  /** Ids of roles. */
  roles?: string[];
  /** E-mail addresses this user had before, newest last, each with the epoch second until which it held. */
  email_history?: { email?: string; email_verified: boolean; until: number }[];
  blocked?: boolean;
  /** Providers of a second factor that the user must give, whatever the policy; none where there is no entry. */
  multifactor?: string[];
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
}

/** A database user's password; `id` is the user's. Only hashes are kept. */
export interface CredentialRecord extends Stored {
  passwordHash: string;
  /** Hashes of earlier passwords, newest first, for the connection's history rule. */
  history: string[];
  /** How often the password was set anew; none for never. */
  version?: number;
}
