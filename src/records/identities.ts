// Identities: by what a user is known in a connection. A user may have several; each is a record of its own.
import type { Stored } from './record.ts';

/** The kinds of addresses by which people say who they are. */
export const ADDRESS_KINDS = ['email', 'username', 'phone_number'] as const;
export type AddressKind = (typeof ADDRESS_KINDS)[number];

/** What an upstream provider gave with a login: its tokens, and what it needs to end the session there. */
export interface UpstreamGrant {
  access_token?: string;
  refresh_token?: string;
  id_token?: string;
  /** When the access token ends, epoch seconds, where the provider said so. */
  expires_at?: number;
  /** The scopes of the access token, where the provider said which (RFC 6749 §5.1). */
  scope?: string;
  /** What the strategy needs for a logout there. */
  logout?: Record<string, string>;
}

/** One identity; its `id` is {@link identityId}, so that no two have the same name in a connection. */
export interface IdentityRecord extends Stored {
  /** The user whose it is. */
  user_id: string;
  /** The connection's name. */
  connection: string;
  /** The connection's strategy. */
  provider: string;
  /** What the connection calls the user; `user_id` in the management vocabulary's `identities`. */
  upstream_id: string;
  isSocial: boolean;
  /** What the connection says of the user, of an identity that was linked to another. */
  profile?: Record<string, unknown>;
  /** What an upstream provider says beyond the profile's own fields, by names of its own. */
  attributes?: Record<string, unknown>;
  /** What an upstream provider gave at the last login; stored sealed. */
  upstream?: UpstreamGrant;
  /** Whoever was made before a login brings their second factors with their first one. */
  awaitsFactors?: boolean;
  /** Ids of users whom their owner, being asked, did not want it linked to. */
  link_declined?: string[];
  /** Lower case. */
  email?: string;
  /** Lower case. */
  username?: string;
  /** E.164. */
  phone_number?: string;
  /** The kinds of addresses that nobody else in the connection may have, where it has one. */
  unique: AddressKind[];
}

/** The id of an identity. Names of connections have no bar. */
export function identityId(connection: string, upstreamId: string): string {
  return `${connection}|${upstreamId}`;
}

/** What an identity is found by: an address in one connection, in the form that it is kept in. */
export function addressKey(connection: string, kind: AddressKind, address: string): string {
  return `${connection}\n${kind}\n${address}`;
}

/** The key of an identity's address of a kind; undefined where it has none. */
export function addressOf(identity: IdentityRecord, kind: AddressKind): string | undefined {
  const address = identity[kind];
  return address === undefined ? undefined : addressKey(identity.connection, kind, address);
}
