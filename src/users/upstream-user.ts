// Somebody as an upstream provider has just told of them.
import type { AddressKind, UpstreamGrant } from '../records/identities.ts';
import type { RootAttributes } from '../records/upstream.ts';
import type { AlsoWritten } from './create.ts';

/** Somebody as an upstream provider knows them, verified by the connection's strategy. */
export interface UpstreamUser {
  /** The connection's name. */
  connection: string;
  /** The connection's strategy. */
  provider: string;
  isSocial: boolean;
  /** The user's id after the strategy and a bar: what the provider calls them, where needed within the connection. */
  upstreamId: string;
  /** What the provider says of them. */
  profile: Readonly<Record<string, unknown>>;
  /** Metadata of a new user, as the operator's own script has it; never what a provider claims. */
  metadata?: { user_metadata?: Record<string, unknown>; app_metadata?: Record<string, unknown> } | undefined;
  /** The provider's tokens, kept sealed. */
  grant?: UpstreamGrant | undefined;
  /** When the provider's word becomes that of the user's record. */
  rootAttributes: RootAttributes;
  /** Members of the profile that are not stored. */
  nonPersistent: readonly string[];
  /** The kinds of addresses by which users are found, and which nobody else in the connection may have; none by default. */
  unique?: readonly AddressKind[];
  /** Whether a new user brings second factors with their first login. */
  awaitsFactors?: boolean | undefined;
  /** What is written with a new user, or not at all. */
  also?: AlsoWritten;
}
