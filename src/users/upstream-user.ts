// The type of a user as an upstream provider describes them at a login.
import type { AddressKind, UpstreamGrant } from '../records/connections/identities.ts';
import type { RootAttributes } from '../records/connections/upstream.ts';
import type { Identity } from './changes.ts';
import type { ExpectedConnection } from './connection-check.ts';
import type { FurtherWrites } from './create.ts';
import type { User } from './user.ts';

/** How an account of a provider is known: by an id that is its own for ever, and by a name. */
export interface StableId {
  /** The provider's id of the account, which it never gives to another. */
  id: string;
  /** The name, as `upstream_id` of identities that have it as their id. */
  named: string;
  /** The `upstream_id` of a new identity if somebody else has had the name. */
  unnamed: string;
  /** Returns whether an identity, in which no id is recorded yet, is certainly that of the account. */
  isSame(identity: Identity, user: User): boolean;
  /** What the account is, for the operator: its name at the provider, and when it was created there, if that is known. */
  description: string;
}

/** A user of an upstream provider, verified by the connection's strategy. */
export interface UpstreamUser extends ExpectedConnection {
  /** The connection's strategy. */
  provider: string;
  isSocial: boolean;
  /** The part of the user's id after the strategy and a bar: the provider's id, with the connection's name if needed. */
  upstreamId: string;
  /** The provider's id that it never gives to another account, where `upstreamId` is, or once was, a name. */
  stable?: StableId | undefined;
  /** What the id is, in English, if the provider says that it is a name or address. */
  idIs?: string | undefined;
  /** The profile that the provider returned. */
  profile: Readonly<Record<string, unknown>>;
  // docs/understand/decisions/connections.md#metadata-that-a-profile-script-returns-is-used-for-new-users-only
  /** Metadata of a new user, from the operator's own script; never from a provider's claims. */
  metadata?: { user_metadata?: Record<string, unknown>; app_metadata?: Record<string, unknown> } | undefined;
  /** The provider's tokens, which are stored encrypted. */
  grant?: UpstreamGrant | undefined;
  /** When the profile is copied to the user's record. */
  rootAttributes: RootAttributes;
  /** Members of the profile that are not stored. */
  nonPersistent: readonly string[];
  /** The kinds of addresses by which users are found and which must be unique in the connection; none by default. */
  unique?: readonly AddressKind[];
  /** Whether second factors of a new user may come with their first login. */
  awaitsFactors?: boolean | undefined;
  /** Written with a new user, in the same batch. */
  also?: FurtherWrites;
}
