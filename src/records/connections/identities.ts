// Identities: how users are identified in connections. A user may have several; each is a record.
import type { Stored } from '../base/record.ts';

/** The kinds of identifiers that users log in with. */
export const ADDRESS_KINDS = ['email', 'username', 'phone_number'] as const;
export type AddressKind = (typeof ADDRESS_KINDS)[number];

/** What an upstream provider issued at a login: its tokens, and what is needed to end the session there. */
export interface UpstreamGrant {
  access_token?: string;
  refresh_token?: string;
  id_token?: string;
  /** When the access token expires, in epoch seconds, if the provider said so. */
  expires_at?: number;
  /** The scopes of the access token, if the provider said which (RFC 6749 §5.1). */
  scope?: string;
  /** What the strategy needs for a logout at the provider. */
  logout?: Record<string, string>;
}

// docs/understand/decisions/users-linking.md#each-identity-is-a-record-of-its-own
/** An identity. Its `id` is {@link identityId}, so it is unique within a connection. */
export interface IdentityRecord extends Stored {
  user_id: string;
  /** The connection's name. */
  connection: string;
  /** The connection's strategy. */
  provider: string;
  /** The user's id in the connection; `user_id` of `identities` in the Management API. */
  upstream_id: string;
  isSocial: boolean;
  /**
   * The provider's own id of the account, which it never gives to another, where `upstream_id` is a name that it may
   * give to another. Only this account logs in by the identity; with null, none does.
   */
  stable_id?: string | null;
  /** The latest account that was refused because it has the name of this one, but may be another's. */
  refused?: { stable_id: string; description: string; at: string };
  /** For an identity that is linked to a user of another: the profile from its own connection. */
  profile?: Record<string, unknown>;
  /** Attributes from an upstream provider that the profile has no member for, by the provider's names. */
  attributes?: Record<string, unknown>;
  /** What an upstream provider issued at the last login; stored sealed. */
  upstream?: UpstreamGrant;
  /** Set if the user was created before the first login, which imports their second factors. */
  awaitsFactors?: boolean;
  /** Ids of users whom their owner declined to link this identity to. */
  link_declined?: string[];
  /** In lower case. */
  email?: string;
  /** In lower case. */
  username?: string;
  /** In E.164 format. */
  phone_number?: string;
  /** The kinds of identifiers that must be unique in the connection, if the identity has one. */
  unique: AddressKind[];
}

/** Returns the id of an identity. It is unambiguous because names of connections contain no bar. */
export function identityId(connection: string, upstreamId: string): string {
  return `${connection}|${upstreamId}`;
}

/** Returns the key that an identity is found by: an identifier in a connection, normalized. */
export function addressKey(connection: string, kind: AddressKind, address: string): string {
  return `${connection}\n${kind}\n${address}`;
}

/** Returns the key of an identity's identifier; undefined if it has none of that kind. */
export function addressOf(identity: IdentityRecord, kind: AddressKind): string | undefined {
  const address = identity[kind];
  return address === undefined ? undefined : addressKey(identity.connection, kind, address);
}
