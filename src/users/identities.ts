// Identities: how users are known in their connections.
import { strategyRecord } from '../records/connections.ts';
import { type NamedConnection, namesIn } from '../records/database-attributes.ts';
import { spellingsOf } from '../records/email.ts';
import {
  ADDRESS_KINDS,
  type AddressKind,
  addressKey,
  type IdentityRecord,
  identityId,
} from '../records/identities.ts';
import type { Frozen } from '../records/record.ts';
import type { Store } from '../store/contract.ts';
import type { ExpectedConnection } from './connection-check.ts';
import type { User } from './user.ts';

export type Identity = Frozen<IdentityRecord>;

/** An address in a connection: e-mail and username in lower case, a phone number in E.164. */
export interface ConnectionAddress {
  /** The connection's name. */
  connection: string;
  kind: AddressKind;
  address: string;
}

/** An identity to be created. */
export interface NewIdentity extends ExpectedConnection {
  /** The connection's strategy. */
  provider: string;
  /** The user's id in the connection. */
  upstreamId: string;
  /** In the form in which they are stored. */
  addresses: Partial<Record<AddressKind, string>>;
  /** The kinds of addresses that must be unique in the connection. */
  unique: readonly AddressKind[];
}

/** Returns the record of a user's identity. */
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

/** An id that no user has. It is read for unknown addresses, so that they cause as many reads as known ones. */
export const NOBODY = 'nobody';

/** Returns the id of the user whose identity has an address; undefined if there is none. */
export async function idByAddress(
  store: Store,
  { connection, kind, address }: ConnectionAddress,
): Promise<string | undefined> {
  for (const one of kind === 'email' ? spellingsOf(address) : [address]) {
    const all = await store.collection('identities').findBy('address', addressKey(connection, kind, one));
    // An address of several identities finds none of them, as in identityByName.
    if (all.length === 1) return all[0]?.user_id;
  }
  return undefined;
}

/** Returns the identity with an identifier as typed, of any kind that the connection's users log in with. */
export async function identityByName(
  store: Store,
  connection: NamedConnection,
  typed: string,
): Promise<Identity | undefined> {
  for (const { kind, address } of namesIn(connection, typed)) {
    const key = addressKey(connection.name, kind, address);
    const all = await store.collection('identities').findBy('address', key);
    // Older records and some connections allow several identities with one address; it finds none of them.
    if (all.length === 1) return all[0];
  }
  return undefined;
}

/**
 * Returns the id of the user that an identity was created with. Passwords are stored under it, so that an identity keeps its
 * own when it is linked to another user.
 */
export function originalUserId({
  provider,
  upstream_id,
}: Pick<Identity, 'provider' | 'upstream_id'>): string {
  return `${provider}|${upstream_id}`;
}

/** Returns whether an identity was linked to a user who was created with another. */
export function isLinked(identity: Pick<Identity, 'provider' | 'upstream_id' | 'user_id'>): boolean {
  return originalUserId(identity) !== identity.user_id;
}

/** Returns all users with an e-mail address. @param email in its stored form. */
export async function usersWithEmail(store: Store, email: string): Promise<User[]> {
  const users = store.collection('users');
  return (await Promise.all(spellingsOf(email).map((one) => users.findBy('email', one)))).flat();
}

/** Returns the user whose identity has an address; undefined if there is none. */
export async function findByAddress(store: Store, address: ConnectionAddress): Promise<User | undefined> {
  return store.collection('users').get((await idByAddress(store, address)) ?? NOBODY);
}

/** Returns the identity that the user's id was made from; another one if that is gone. */
export function primaryIdentity(identities: readonly Identity[]): Identity | undefined {
  return identities.find((one) => !isLinked(one)) ?? identities.at(0);
}

/** Returns whether a login with any of the identities proves an address, of one of these kinds. */
export function isByAddress(
  identities: readonly Identity[],
  kinds = ADDRESS_KINDS as readonly AddressKind[],
): boolean {
  return identities.every(({ provider }) => {
    const kind = strategyRecord(provider)?.proves;
    return kind !== undefined && kinds.includes(kind);
  });
}
