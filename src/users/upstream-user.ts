// The type of a user as an upstream provider describes them at a login.
import type { AddressKind, UpstreamGrant } from '../records/identities.ts';
import type { RootAttributes } from '../records/upstream.ts';
import type { ExpectedConnection } from './connection-check.ts';
import type { FurtherWrites } from './create.ts';

/** A user of an upstream provider, verified by the connection's strategy. */
export interface UpstreamUser extends ExpectedConnection {
  /** The connection's strategy. */
  provider: string;
  isSocial: boolean;
  /** The part of the user's id after the strategy and a bar: the provider's id, with the connection's name if needed. */
  upstreamId: string;
  /** The profile that the provider returned. */
  profile: Readonly<Record<string, unknown>>;
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
