// Changes of users: of their records, addresses and verified addresses, and their removal.

import { AuthError } from '../http/errors.ts';
import type { Frozen } from '../records/base/record.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import { type NamedConnection, namesIn } from '../records/connections/database-attributes.ts';
import {
  ADDRESS_KINDS,
  type AddressKind,
  addressKey,
  type IdentityRecord,
  identityId,
} from '../records/connections/identities.ts';
import type { UserRecord } from '../records/users/users.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Store, updateWithResult, type Write } from '../store/contract.ts';
import type { ExpectedConnection } from './connection-check.ts';
import type { User, UsersDependencies } from './user.ts';

const now = ({ clock }: Pick<UsersDependencies, 'clock'>) => new Date(clock()).toISOString();

/** Returns a user's new metadata from the present one. It is called with the write, so that no concurrent change is lost. */
export type MetadataMerge = (
  current: Pick<User, 'user_metadata' | 'app_metadata'>,
) => Partial<Pick<UserRecord, 'user_metadata' | 'app_metadata'>>;

/**
 * Changes a user and, in the same batch, those of their identities that are found by a changed address.
 * @param applies decides with the write, on the user as stored then, whether to change anything.
 * @returns undefined if there is no such user, or `applies` returned false.
 * @throws UniqueKeyError if an address belongs to another user of a connection.
 * @throws MetadataTooLarge
 */
export async function updateUser(
  deps: Pick<UsersDependencies, 'store' | 'clock'>,
  userId: string,
  patch: Partial<UserRecord>,
  merge: MetadataMerge = () => ({}),
  applies: (current: User) => boolean = () => true,
): Promise<User | undefined> {
  const { store, clock } = deps;
  const change = (current: User): User => ({
    ...current,
    ...patch,
    ...merge(current),
    id: userId,
    updated_at: now(deps),
    ...emailHistory(current, patch, clock),
  });
  let fault: MetadataTooLarge | undefined;
  /** Returns the user after the change; undefined where it does not apply, or is refused. */
  const changed = (current: User): User | undefined => {
    if (!applies(current)) return undefined;
    const next = change(current);
    fault = metadataFault(next, current);
    return fault === undefined ? next : undefined;
  };
  const kinds = ADDRESS_KINDS.filter((kind) => kind in patch);
  const after =
    kinds.length === 0
      ? await updateWithResult(store.collection('users'), userId, (current) => {
          const next = changed(current);
          return { result: next, next };
        })
      : await updateWithAddresses(deps, userId, { patch, kinds, changed });
  if (fault !== undefined) throw fault;
  return after;
}

interface AddressChange {
  patch: Partial<UserRecord>;
  kinds: readonly AddressKind[];
  /** Returns the user after the change; undefined if it is not made. */
  changed(current: User): User | undefined;
}

async function updateWithAddresses(
  { store }: Pick<UsersDependencies, 'store'>,
  userId: string,
  change: AddressChange,
): Promise<User | undefined> {
  const { writes, after } = await addressWrites(store, userId, change);
  await store.batch(writes);
  return after();
}

/** Returns the writes of a change of addresses, and a function that returns the user once they are written. */
async function addressWrites(
  store: Store,
  userId: string,
  { patch, kinds, changed }: AddressChange,
): Promise<{ writes: Write[]; after(): User | undefined }> {
  const identities = (await store.collection('identities').findBy('user', userId)).filter(
    // A linked identity has addresses of its own, even if they are the same.
    ({ profile }) => profile === undefined,
  );
  let before: User | undefined;
  let after: User | undefined;
  const writes: Write[] = [
    {
      collection: 'users',
      update: userId,
      change: (current) => {
        before = current;
        after = changed(current);
        return after ?? current;
      },
    },
    ...identities.map(
      ({ id }): Write => ({
        collection: 'identities',
        update: id,
        change: (identity) => {
          if (after === undefined) return identity;
          const changedKinds = kinds.filter((kind) => identity[kind] === before?.[kind]);
          const addresses = changedKinds.map((kind) => [kind, patch[kind]]);
          return { ...identity, ...Object.fromEntries(addresses) };
        },
      }),
    ),
  ];
  return { writes, after: () => after };
}

/**
 * Returns the writes that remove an address from a user who never proved it, if there is one, for the batch that gives it to
 * whoever has.
 */
export async function releaseWrites(
  deps: Pick<UsersDependencies, 'store' | 'clock'>,
  unproved: ConnectionAddress,
): Promise<Write[]> {
  const { kind, address } = unproved;
  const holder = await findByAddress(deps.store, unproved);
  if (holder === undefined || kind === 'username') return [];
  const isProved = (user: User) => (kind === 'email' ? user.email_verified : user.phone_verified === true);
  if (isProved(holder) || holder[kind] !== address) return [];
  const patch = { [kind]: undefined, ...(kind === 'phone_number' && { phone_verified: false }) };
  const changed = (user: User): User | undefined =>
    user[kind] !== address || isProved(user)
      ? undefined
      : { ...user, ...patch, updated_at: now(deps), ...emailHistory(user, patch, deps.clock) };
  return (await addressWrites(deps.store, holder.id, { patch, kinds: [kind], changed })).writes;
}

/** @see Users.confirmEmail */
export async function confirmEmail(
  deps: Pick<UsersDependencies, 'store' | 'clock'>,
  userId: string,
  email: string,
): Promise<User | undefined> {
  return updateWithResult(deps.store.collection('users'), userId, (before) => {
    if (before.email !== email) return { result: undefined };
    const proved = { email_verified: true, updated_at: now(deps) };
    const after = { ...before, ...proved, ...emailHistory(before, proved, deps.clock) };
    return { result: after, next: after };
  });
}

/** @see Users.proveEmail */
export async function proveEmail(deps: UsersDependencies, userId: string, email: string): Promise<void> {
  await deps.store.collection('users').update(userId, (before) => {
    if (before.email_verified || before.email !== email) return before;
    const proved = { email_verified: true, user_metadata: {}, updated_at: now(deps) };
    return { ...withoutProfile(before), ...proved, ...emailHistory(before, proved, deps.clock) };
  });
}

/** Removes a user with their identities and credentials, in one batch. */
export async function removeUser(
  { store }: Pick<UsersDependencies, 'store'>,
  userId: string,
  also: readonly Write[] = [],
): Promise<void> {
  const identities = await store.collection('identities').findBy('user', userId);
  await store.batch([
    ...also,
    { collection: 'users', delete: userId },
    { collection: 'credentials', delete: userId },
    ...identities.flatMap((one): Write[] => [
      { collection: 'identities', delete: one.id },
      { collection: 'credentials', delete: originalUserId(one) },
    ]),
  ]);
}

/** Returns a user without the profile members that a sign-up can set; identifiers stay. */
function withoutProfile(user: User): User {
  const { name: _1, given_name: _2, family_name: _3, nickname: _4, picture: _5, ...rest } = user;
  return rest;
}

/** Entries of `email_history` that are kept. They are looked up for as long as access tokens live. */
const EMAIL_HISTORY = 20;

export function emailHistory(before: User, patch: Partial<UserRecord>, clock: Clock): Partial<User> {
  const changes =
    ('email' in patch && patch.email !== before.email) ||
    ('email_verified' in patch && patch.email_verified !== before.email_verified);
  if (!changes) return {};
  const entry = {
    ...(before.email === undefined ? {} : { email: before.email }),
    email_verified: before.email_verified,
    until: clock() / 1000,
  };
  return { email_history: [...(before.email_history ?? []), entry].slice(-EMAIL_HISTORY) };
}

// How much metadata a user may have. Every login reads it, and scripts, messages and tokens are given it, so it is bounded as
// it is stored: what is merged call by call counts together.

type Metadata = Frozen<Pick<UserRecord, 'user_metadata' | 'app_metadata'>>;

// docs/understand/decisions/users-linking.md#a-user-has-at-most-262144-characters-of-user_metadata-and-1000000-of-app_metadata
/**
 * The most characters of each as JSON. Users can fill the first one themselves; it has a bound of its own, so that they
 * cannot take the place of what the tenant's code writes.
 */
export const MAX_METADATA_LENGTH = { user_metadata: 262_144, app_metadata: 1_000_000 } as const;

/** Metadata that is larger than it may be. It is refused as a whole. */
export class MetadataTooLarge extends AuthError {
  readonly member: keyof Metadata;

  constructor(member: keyof Metadata) {
    const most = MAX_METADATA_LENGTH[member];
    super(400, 'invalid_request', `${member} would have more than ${most} characters as JSON.`);
    this.member = member;
  }
}

/** Returns the error for a user's metadata that is too large; undefined when it may be stored. @param before what is stored. */
export function metadataFault(after: Metadata, before?: Metadata): MetadataTooLarge | undefined {
  for (const member of ['user_metadata', 'app_metadata'] as const) {
    if (after[member] === before?.[member]) continue;
    if (JSON.stringify(after[member] ?? {}).length > MAX_METADATA_LENGTH[member])
      return new MetadataTooLarge(member);
  }
  return undefined;
}

// Identities: how users are known in their connections.

export type Identity = Frozen<IdentityRecord>;

/** An address in a connection: e-mail and username in lower case, a phone number in E.164. */
export interface ConnectionAddress {
  /** The connection's name. */
  connection: string;
  kind: AddressKind;
  address: string;
}

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
  const all = await store.collection('identities').findBy('address', addressKey(connection, kind, address));
  // An address of several identities finds none of them, as in identityByName.
  return all.length === 1 ? all[0]?.user_id : undefined;
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
    // Some connections allow several identities with one address; it finds none of them.
    if (all.length === 1) return all[0];
  }
  return undefined;
}

// docs/understand/decisions/users-linking.md#a-linked-identity-keeps-its-own-password-and-identifiers
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

/** @param email in its stored form. */
export async function usersWithEmail(store: Store, email: string): Promise<User[]> {
  return store.collection('users').findBy('email', email);
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
