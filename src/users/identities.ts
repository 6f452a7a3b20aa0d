// Identities: by what users are known in their connections.
import { strategyRecord } from '../records/connections.ts';
import { type NamedConnection, namesIn } from '../records/database-attributes.ts';
import {
  ADDRESS_KINDS,
  type AddressKind,
  addressKey,
  type IdentityRecord,
  identityId,
} from '../records/identities.ts';
import type { Frozen } from '../records/record.ts';
import type { Store } from '../store/contract.ts';
import type { User } from './user.ts';

export type Identity = Frozen<IdentityRecord>;

/** An address in a connection: e-mail and username in lower case, a phone number in E.164. */
export interface ConnectionAddress {
  /** The connection's name. */
  connection: string;
  kind: AddressKind;
  address: string;
}

/** What a strategy says of a new identity. */
export interface NewIdentity {
  connection: string;
  /** The connection's strategy. */
  provider: string;
  /** What the connection calls the user. */
  upstreamId: string;
  /** In the form that they are kept in. */
  addresses: Partial<Record<AddressKind, string>>;
  /** The kinds of addresses that nobody else in the connection may have. */
  unique: readonly AddressKind[];
}

/** The record of an identity of a user. */
export function identityRecord(userId: string, identity: NewIdentity): IdentityRecord {
  const { connection, provider, upstreamId, addresses, unique } = identity;
  return {
    id: identityId(connection, upstreamId),
    user_id: userId,
    connection,
    provider,
    upstream_id: upstreamId,
    isSocial: false,
    ...addresses,
    unique: [...unique],
  };
}

/** Reads as much for an address that is nobody's as for one that names a user: who waits for it learns nothing. */
export const NOBODY = 'nobody';

/** The id of the user whose identity has an address; undefined where it is nobody's. */
export async function idByAddress(
  store: Store,
  { connection, kind, address }: ConnectionAddress,
): Promise<string | undefined> {
  const key = addressKey(connection, kind, address);
  const all = await store.collection('identities').findBy('address', key);
  // An address that several users have names none of them, as in identityByName.
  return all.length === 1 ? all[0]?.user_id : undefined;
}

/** The identity that somebody means who types a name of theirs in a connection: of a kind that is a name there. */
export async function identityByName(
  store: Store,
  connection: NamedConnection,
  typed: string,
): Promise<Identity | undefined> {
  for (const { kind, address } of namesIn(connection, typed)) {
    const key = addressKey(connection.name, kind, address);
    const all = await store.collection('identities').findBy('address', key);
    // An address that several users have names none of them: older records, and some connections, allow that.
    if (all.length === 1) return all[0];
  }
  return undefined;
}

/**
 * The id of the user whom an identity was made with. A password is kept by it, so that an identity that was linked to
 * another user keeps its own.
 */
export function homeOf({ provider, upstream_id }: Pick<Identity, 'provider' | 'upstream_id'>): string {
  return `${provider}|${upstream_id}`;
}

/** Whether an identity was linked to a user who was made with another. */
export function isLinked(identity: Pick<Identity, 'provider' | 'upstream_id' | 'user_id'>): boolean {
  return homeOf(identity) !== identity.user_id;
}

/** The user whose identity has an address; undefined where it is nobody's. */
export async function findByAddress(store: Store, address: ConnectionAddress): Promise<User | undefined> {
  return store.collection('users').get((await idByAddress(store, address)) ?? NOBODY);
}

/** The identity that a user was made with, whose name is in the user's id; another one where that is gone. */
export function primaryIdentity(identities: readonly Identity[]): Identity | undefined {
  return identities.find((one) => !isLinked(one)) ?? identities.at(0);
}

/** Whether whoever logs in with any of a user's identities has thereby proved an address, of these kinds. */
export function isByAddress(
  identities: readonly Identity[],
  kinds = ADDRESS_KINDS as readonly AddressKind[],
): boolean {
  return identities.every(({ provider }) => {
    const kind = strategyRecord(provider)?.proves;
    return kind !== undefined && kinds.includes(kind);
  });
}
