// The users of the tenant, with their identities and passwords: all functions on them as one object.

import { DATABASE } from '../records/connections/connections.ts';
import type { NamedConnection } from '../records/connections/database-attributes.ts';
import { identityId, type UpstreamGrant } from '../records/connections/identities.ts';
import type { UserRecord } from '../records/users/users.ts';
import { UniqueKeyError, type Write } from '../store/contract.ts';
import type { Asker } from './asker.ts';
import {
  type ConnectionAddress,
  confirmEmail,
  findByAddress,
  type Identity,
  idByAddress,
  identityByName,
  type MetadataMerge,
  NOBODY,
  originalUserId,
  proveEmail,
  removeUser,
  updateUser,
  usersWithEmail,
} from './changes.ts';
import type { ExpectedConnection } from './connection-check.ts';
import { createUser, type FurtherWrites, type NewUser, type Profile } from './create.ts';
import { type Credentials, createCredentials, type PasswordCheck } from './credentials.ts';
import { addressesOf, type DatabaseUser, isSameUser } from './database-user.ts';
import { factorWrites, factorWritesIfNone } from './imported-factors.ts';
import { lacksFactor, letsEnrolWrite } from './left-factors.ts';
import { declineLink, type LinkJudge, linkUser, unlinkIdentity, updateLinked } from './linking.ts';
import type { Login } from './login.ts';
import { type MirroredUser, mirrorUser } from './mirrored.ts';
import { permissionsAt } from './permissions.ts';
import { rootProfile } from './profile.ts';
import { removalWrites } from './removed-users.ts';
import { idOfStable, type StableAccount } from './stable-id.ts';
import { stillWrite } from './still.ts';
import { makeOldUser } from './transfer/moved-one.ts';
import { accountFromUpstream, renewGrant } from './upstream.ts';
import type { UpstreamUser } from './upstream-user.ts';
import type { User, UsersDependencies } from './user.ts';

export interface Users {
  get(id: string): Promise<User | undefined>;
  /** Returns the user with an identifier as typed, of any kind that the connection's users log in with. */
  findInConnection(connection: NamedConnection, identifier: string): Promise<User | undefined>;
  /** Returns the id of the user that {@link findInConnection} finds, without reading the user. */
  idInConnection(connection: NamedConnection, identifier: string): Promise<string | undefined>;
  idByAddress(address: ConnectionAddress): Promise<string | undefined>;
  findByAddress(address: ConnectionAddress): Promise<User | undefined>;
  /** Returns all users with an e-mail address, in any connection. @param email in lower case. */
  withEmail(email: string): Promise<User[]>;
  identityOf(connection: string, upstreamId: string): Promise<Identity | undefined>;
  /** Returns whether a user has a second factor elsewhere that nobody can ask for here; see left-factors.ts. */
  lacksFactor(user: User): Promise<boolean>;
  /** Returns all identities of a user, ordered by id. */
  identitiesOf(userId: string): Promise<Identity[]>;
  /** Returns the names of a user's permissions at an API: direct ones, and those of their roles. */
  permissionsAt(user: User, identifier: string, roles?: readonly string[]): Promise<string[]>;
  /** Returns the user who has just proved an address; see {@link userWhoProved}. */
  whoProved(
    address: ProvedAddress & { asker?: Asker | undefined },
  ): Promise<{ user: User; isNew: boolean } | undefined>;
  /** Returns the user who has just logged in at an upstream provider; see {@link accountFromUpstream}. */
  fromUpstream(
    upstream: UpstreamUser,
  ): Promise<{ user: User; isNew: boolean } | { refused: Identity } | undefined>;
  /** Returns the id of the user that an account of a provider certainly logs in as; see {@link idOfStable}. */
  idOfStable(account: StableAccount): Promise<string | undefined>;
  /** Stores the tokens that a provider issued for a refresh token; see {@link renewGrant}. */
  renewGrant(identityId: string, refreshToken: string, grant: UpstreamGrant): Promise<void>;
  /** Creates a user of any strategy; see {@link createUser}. */
  create(
    user: NewUser & { password?: string | undefined; asker?: Asker | undefined },
  ): ReturnType<typeof createUser>;
  /** Returns the hash of a password, for a user who is created later. */
  hash(password: string): Promise<string>;
  /**
   * It takes the same time without a user.
   * @returns the version of the credential; undefined if the password is wrong.
   */
  verifyPassword(userId: string | undefined, password: string): Promise<number | undefined>;
  /**
   * Reads a credential and returns a function that verifies passwords by it, as {@link verifyPassword} does.
   * @param by the identifier as typed: a linked identity has a password of its own.
   */
  passwordOf(
    userId: string | undefined,
    by?: { connection: NamedConnection; identifier: string },
  ): Promise<PasswordCheck>;
  /** Returns whether a password is stored here for an identity. @param home of the identity ({@link originalUserId}). */
  hasPassword(home: string): Promise<boolean>;
  /** Moves a user here from a custom database; see {@link moveUser}. */
  move(moved: MovedUser): ReturnType<typeof moveUser>;
  /** Creates or updates the record of a user of a custom database; see {@link mirrorUser}. */
  mirror(mirrored: MirroredUser): ReturnType<typeof mirrorUser>;
  /** Returns the version of a user's credential, which increases with each password that is set. */
  credentialVersion(userId: string): Promise<number>;
  /**
   * Returns whether a password is one of the last `size`, including the present one.
   * @param home the id under which the password is stored ({@link originalUserId}).
   */
  isUsedBefore(home: string, password: string, size: number): Promise<boolean>;
  /** @returns false if the credential does not have `how.version`; nothing is changed then. */
  setPassword(userId: string, password: string, how?: PasswordChange): Promise<boolean>;
  /**
   * Records that a user's password was set in a custom database.
   * @param home as for {@link isUsedBefore}. @param also written in the same batch.
   */
  recordNewPassword(userId: string, home: string, also?: readonly Write[]): Promise<void>;
  /** Returns the identity with an identifier as typed, in one connection. */
  identityInConnection(connection: NamedConnection, identifier: string): Promise<Identity | undefined>;
  /** Makes another user's identities those of a user, and removes the other user; see {@link linkUser}. */
  link(userId: string, other: string, judge?: LinkJudge): Promise<boolean>;
  /** Makes a linked identity a user of its own again; see {@link unlinkIdentity}. */
  unlink(userId: string, identityId: string, also?: readonly Write[]): Promise<boolean>;
  /** Records that the user of a login declined to be linked to another user; see {@link declineLink}. */
  declineLink(login: Pick<Login, 'userId' | 'connection'>, other: string): Promise<void>;
  /** Returns the write that belongs to each act that a login of a user allows; see {@link stillWrite}. @param judged by. */
  stillWrite(judged: User): Write;
  /** Returns the write that records a login: its time, IP address and count. */
  loginWrite(userId: string, ip: string): Write;
  /**
   * Marks an e-mail address as verified, if the user still has it. If it was not verified before, the profile and
   * `user_metadata` are removed, as somebody else may have signed up with the address.
   */
  proveEmail(userId: string, email: string): Promise<void>;
  /**
   * Marks an e-mail address as verified, after its owner confirmed the account; the profile stays.
   * @returns undefined if the user has another address by now, or does not exist.
   */
  confirmEmail(userId: string, email: string): Promise<User | undefined>;
  /** Changes the addresses of a linked identity; see {@link updateLinked}. */
  updateLinked(
    userId: string,
    identityId: string,
    patch: Parameters<typeof updateLinked>[3],
  ): Promise<boolean>;
  /** @param by the user as they were judged, if they remove themselves; see {@link stillWrite}. */
  remove(userId: string, by?: User): Promise<void>;
  /**
   * Changes a user's record, and the identities that have a changed address. The previous e-mail address is kept in
   * `email_history`, for tokens that were issued before.
   * @param merge returns new metadata from the present one.
   * @param applies decides on the user as stored whether to change anything; if not, undefined is returned.
   * @throws UniqueKeyError if an address belongs to another user in one of the user's connections.
   */
  update(
    userId: string,
    patch: Partial<UserRecord>,
    merge?: MetadataMerge,
    applies?: (current: User) => boolean,
  ): Promise<User | undefined>;
}

interface PasswordChange {
  /** As for {@link Users.isUsedBefore}; the user's id by default. */
  home?: string | undefined;
  asker?: Asker | undefined;
  /** Written in the same batch. */
  also?: readonly Write[];
  /** The version that the credential must still have, because the change was allowed for that version. */
  version?: number | undefined;
  /** The user as they were judged, if it is set by their login; see {@link stillWrite}. */
  by?: User | undefined;
}

/**
 * The users of the tenant alone. What may show no administrator (the Management API, the tenant's own code) asks for these:
 * those with administrators have another type, and do not compile in their place.
 */
export interface TenantUsers extends Users {
  readonly whose: 'tenant';
}

export function createUsers(deps: UsersDependencies): TenantUsers {
  const { store, clock } = deps;
  const users = store.collection('users');
  const credentials = createCredentials(deps);
  const now = () => new Date(clock()).toISOString();
  const idInConnection: Users['idInConnection'] = async (connection, identifier) =>
    (await identityByName(store, connection, identifier))?.user_id;
  return {
    whose: 'tenant',
    get: (id) => users.get(id),
    findInConnection: async (connection, identifier) =>
      users.get((await idInConnection(connection, identifier)) ?? NOBODY),
    idInConnection,
    idByAddress: (address) => idByAddress(store, address),
    findByAddress: (address) => findByAddress(store, address),
    identityOf: (connection, id) => store.collection('identities').get(identityId(connection, id)),
    lacksFactor: (user) => lacksFactor(store, user),
    identitiesOf: (userId) => store.collection('identities').findBy('user', userId),
    permissionsAt: (user, identifier, roles) => permissionsAt(store, user, identifier, roles),
    whoProved: (address) => userWhoProved(deps, address),
    fromUpstream: (upstream) => accountFromUpstream(deps, upstream),
    idOfStable: (account) => idOfStable(deps, account),
    renewGrant: (id, refreshToken, grant) => renewGrant(deps, { id, refreshToken, grant }),
    create: async ({ password, ...user }) => {
      // The password is hashed before anything is looked up, so that a taken address takes as long as a free one.
      const passwordHash = password === undefined ? user.passwordHash : await deps.hasher.hash(password);
      return createUser(deps, { ...user, passwordHash });
    },
    hash: (password) => deps.hasher.hash(password),
    verifyPassword: credentials.verify,
    passwordOf: async (userId, by) => {
      const identity = by && (await identityByName(store, by.connection, by.identifier));
      return credentials.load(userId, identity && originalUserId(identity));
    },
    hasPassword: credentials.has,
    move: (moved) => moveUser(deps, credentials, moved),
    mirror: (mirrored) => mirrorUser(deps, mirrored),
    identityInConnection: (connection, identifier) => identityByName(store, connection, identifier),
    withEmail: (email) => usersWithEmail(store, email),
    declineLink: (login, other) => declineLink(deps, login, other),
    link: (userId, other, judge) => linkUser(deps, credentials, userId, other, judge),
    unlink: (userId, identityId, also) => unlinkIdentity(deps, credentials, { userId, identityId, also }),
    credentialVersion: credentials.version,
    isUsedBefore: credentials.isUsedBefore,
    setPassword: (userId, password, how = {}) =>
      credentials.set(userId, password, replacementOf(userId, how, now)),
    recordNewPassword: (userId, home, also = []) =>
      credentials.clear(userId, home, [resetWrite(userId, now), ...also]),
    stillWrite,
    loginWrite: (userId, ip) => loginWrite(userId, ip, now),
    confirmEmail: (userId, email) => confirmEmail(deps, userId, email),
    updateLinked: (userId, identityId, patch) => updateLinked(deps, userId, identityId, patch),
    remove: async (userId, by) => {
      const still = by === undefined ? [] : [stillWrite(by)];
      await removeUser(deps, userId, [...still, ...(await removalWrites(deps, userId))]);
    },
    proveEmail: (userId, email) => proveEmail(deps, userId, email),
    update: (userId, patch, merge, applies) => updateUser(deps, userId, patch, merge, applies),
  };
}

/** Returns how a password replaces another. What `by` requires of the user is required before the change. */
function replacementOf(
  userId: string,
  { home = userId, also = [], version, by }: PasswordChange,
  now: () => string,
) {
  const still = by === undefined ? [] : [stillWrite(by)];
  return { home, also: [...still, resetWrite(userId, now), ...also], version };
}

function resetWrite(userId: string, now: () => string): Write {
  return {
    collection: 'users',
    update: userId,
    change: (before) => ({ ...before, last_password_reset: now(), updated_at: now() }),
  };
}

function loginWrite(userId: string, ip: string, now: () => string): Write {
  return {
    collection: 'users',
    update: userId,
    change: (before) => {
      return { ...before, last_login: now(), last_ip: ip, logins_count: before.logins_count + 1 };
    },
  };
}

// Users who move here from a custom database, one by one, as they log in. That database verifies the first login; from then
// on their password is stored here.

interface MovedUser extends DatabaseUser, ExpectedConnection {
  /** The password that the database has just verified; undefined if this is not a login. */
  password?: string;
}

/**
 * Creates the user, or sets the first password of a user who was created before. Concurrent calls create one user and set one
 * password. A password that is stored here is never replaced.
 * @returns the user, the check by which their password is verified from now on, and whether this call stored the password;
 *   undefined if the user has no address, or the address or the id belongs to another user.
 */
async function moveUser(
  deps: UsersDependencies,
  credentials: Pick<Credentials, 'load' | 'setFirst'>,
  moved: MovedUser,
): Promise<{ user: User; verify: PasswordCheck; isStored: boolean } | undefined> {
  const { connection, connectionId, upstreamId, profile, metadata, password, factors, multifactor } = moved;
  const { addresses, unique } = addressesOf(moved);
  if (Object.keys(addresses).length === 0) return undefined;
  if (moved.record !== undefined) {
    await makeOldUser(deps, moved.record, factors);
    const { user_id: userId } = moved.record;
    const made = await deps.store.collection('identities').get(identityId(connection, upstreamId));
    // Made of the identity alone, a user who was created with another one would get another id.
    if (userId !== `${DATABASE}|${upstreamId}` && made?.user_id !== userId) return undefined;
  }
  const { email: _1, username: _2, ...claims } = rootProfile({ profile, nonPersistent: [] });
  const passwordHash = password === undefined ? undefined : await deps.hasher.hash(password);
  try {
    const created = await createUser(deps, {
      identity: { connection, connectionId, provider: DATABASE, upstreamId, addresses, unique },
      profile: { ...claims, ...metadata, ...(multifactor && { multifactor: [...multifactor] }) },
      passwordHash,
      also: ({ id }) => factorWrites(deps, id, factors),
    });
    if ('user' in created) {
      const verify = await credentials.load(created.user.id);
      return { user: created.user, verify, isStored: passwordHash !== undefined };
    }
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  const before = await deps.store.collection('identities').get(identityId(connection, upstreamId));
  if (before === undefined || !isSameUser(before, moved)) return undefined;
  const isStored =
    passwordHash !== undefined &&
    (await credentials.setFirst(originalUserId(before), passwordHash, [
      ...(await factorWritesIfNone(deps, before, factors)),
      // Whoever asks the old tenant has judged by its answer that the user is let in.
      ...(moved.record === undefined ? [] : [letsEnrolWrite(before.user_id)]),
      ...(multifactor === undefined ? [] : [multifactorWrite(before.user_id, multifactor)]),
    ]));
  const user = await deps.store.collection('users').get(before.user_id);
  return user && { user, verify: await credentials.load(user.id, originalUserId(before)), isStored };
}

function multifactorWrite(userId: string, multifactor: readonly string[]): Write {
  return {
    collection: 'users',
    update: userId,
    change: (current) => ({ ...current, multifactor: [...(current.multifactor ?? multifactor)] }),
  };
}

// Users of passwordless connections, who log in by proving an address.

interface ProvedAddress extends ConnectionAddress, ExpectedConnection {
  kind: 'email' | 'phone_number';
  /** The connection's strategy. */
  provider: string;
  /** Whether to create a user if there is none. */
  mayCreate: boolean;
  /** The user with the address, if that was looked up already. */
  lookup?: { user: User | undefined };
  profile?: Profile | undefined;
  /** Written with a new user. */
  also?: FurtherWrites | undefined;
}

const VERIFIED = { email: 'email_verified', phone_number: 'phone_verified' } as const;

/**
 * Returns the user who has just proved an address, with the address marked as verified. Creates the user if there is none;
 * concurrent proofs create one user.
 * @returns undefined if there is none and `mayCreate` is false.
 */
async function userWhoProved(
  deps: UsersDependencies,
  proved: ProvedAddress,
): Promise<{ user: User; isNew: boolean } | undefined> {
  const { store, clock } = deps;
  const found = proved.lookup === undefined ? await findByAddress(store, proved) : proved.lookup.user;
  if (found === undefined) return proved.mayCreate ? create(deps, proved) : undefined;
  const verified = VERIFIED[proved.kind];
  // The address of a linked identity says nothing about the user's own address.
  if (found[verified] === true || found[proved.kind] !== proved.address) return { user: found, isNew: false };
  const updated = await store
    .collection('users')
    .update(found.id, (current) =>
      current[proved.kind] === proved.address
        ? { ...current, [verified]: true, updated_at: new Date(clock()).toISOString() }
        : current,
    );
  return { user: updated ?? found, isNew: false };
}

async function create(
  deps: UsersDependencies,
  proved: ProvedAddress,
): Promise<{ user: User; isNew: boolean }> {
  const { connection, connectionId, provider, kind, address, profile, also } = proved;
  const created = await createUser(deps, {
    identity: { connection, connectionId, provider, addresses: { [kind]: address }, unique: [kind] },
    profile: { ...profile, [VERIFIED[kind]]: true },
    also,
  });
  if ('user' in created) return { user: created.user, isNew: true };
  // A concurrent proof has created the user.
  const user = await findByAddress(deps.store, proved);
  if (user === undefined) throw new Error('the new user is not in the store');
  return { user, isNew: false };
}
