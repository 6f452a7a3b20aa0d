// Formats users for pages.
import type { FormatTime } from '../../../capabilities/pages/times.ts';

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

/** Returns a name for a user: the name, or else an identifier. */
export function nameOf({
  name,
  email,
  username,
  phone_number,
  user_id,
}: Pick<UserAnswer, 'name' | 'email' | 'username' | 'phone_number' | 'user_id'>): string {
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

export function rowOf(user: UserAnswer, time: FormatTime): object {
  const name = nameOf(user);
  const address = user.email ?? user.phone_number ?? user.username;
  return {
    id: user.user_id,
    url: encodeURIComponent(user.user_id),
    name,
    initial: initialOf(name),
    address: address === name ? undefined : address,
    connections: [...new Set(user.identities.map(({ connection }) => connection))],
    isBlocked: user.blocked === true,
    isUnverified: user.email !== undefined && user.email_verified !== true,
    lastLogin: time(user.last_login),
    logins: user.logins_count ?? 0,
  };
}
