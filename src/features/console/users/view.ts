// Formats users for pages.
/** A user as returned by the Management API, with the members that the pages read. */
export interface UserAnswer {
  user_id: string;
  email?: string;
  email_verified?: boolean;
  phone_number?: string;
  phone_verified?: boolean;
  username?: string;
  name?: string;
  given_name?: string;
  family_name?: string;
  nickname?: string;
  picture?: string;
  blocked?: boolean;
  created_at?: string;
  updated_at?: string;
  last_login?: string;
  last_ip?: string;
  logins_count?: number;
  last_password_reset?: string;
  user_metadata?: Record<string, unknown>;
  app_metadata?: Record<string, unknown>;
  identities: IdentityAnswer[];
}

interface IdentityAnswer {
  connection: string;
  user_id: string;
  provider: string;
  isSocial: boolean;
  profileData?: { email?: string; name?: string; phone_number?: string; username?: string };
}

/** The members that a user's name is made of. */
export const NAMING = ['name', 'email', 'username', 'phone_number', 'user_id'] as const;

/** Returns a name for a user: the name, or else an identifier. */
export function nameOf({
  name,
  email,
  username,
  phone_number,
  user_id,
}: Pick<UserAnswer, (typeof NAMING)[number]>): string {
  return name ?? email ?? username ?? phone_number ?? user_id;
}

/**
 * Returns the first letter of a name, shown beside it in place of a picture: loading a picture would reveal the
 * administrator's address to the host that the user chose.
 */
export function initialOf(name: string): string {
  const [first] = new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(name.trim());
  return (first?.segment ?? '?').toUpperCase();
}
