// The users of the tenant: who they are, by which identities they come, what their password is.
import type { NamedConnection } from '../records/database-attributes.ts';
import { identityId, type UpstreamGrant } from '../records/identities.ts';
import type { UserRecord } from '../records/users.ts';
import type { Write } from '../store/contract.ts';
import type { Asker } from './asker.ts';
import {
  confirmEmail,
  type MetadataMerge,
  proveEmail,
  releaseUnproved,
  removeUser,
  updateUser,
} from './changes.ts';
import { createUser, type NewUser } from './create.ts';
import { createCredentials, type PasswordCheck } from './credentials.ts';
import {
  type ConnectionAddress,
  findByAddress,
  homeOf,
  type Identity,
  idByAddress,
  identityByName,
  NOBODY,
} from './identities.ts';
import { declineLink, linkUser, unlinkIdentity, updateLinked } from './linking.ts';
import type { Login } from './login.ts';
import { type MirroredUser, mirrorUser } from './mirrored.ts';
import { type MovedUser, moveUser } from './moved.ts';
import { permissionsAt } from './permissions.ts';
import { type ProvedAddress, userWhoProved } from './proved.ts';
import { renewGrant, userFromUpstream } from './upstream.ts';
import type { UpstreamUser } from './upstream-user.ts';
import type { User, UsersDependencies } from './user.ts';

export interface Users {
  get(id: string): Promise<User | undefined>;
  /** By a name of theirs, as typed, in one connection: of a kind that its users log in with. */
  findInConnection(connection: NamedConnection, identifier: string): Promise<User | undefined>;
  /**
   * The id of the user whom {@link findInConnection} finds, so that the user is read beside what else a login asks.
   * @returns undefined where there is none.
   */
  idInConnection(connection: NamedConnection, identifier: string): Promise<string | undefined>;
  /** The id of the user with an address in one connection. */
  idByAddress(address: ConnectionAddress): Promise<string | undefined>;
  /** By an address in one connection. */
  findByAddress(address: ConnectionAddress): Promise<User | undefined>;
  /** All users with an e-mail address, in lower case, whatever their connections. */
  withEmail(email: string): Promise<User[]>;
  /** The identity by which a connection knows somebody. */
  identityOf(connection: string, upstreamId: string): Promise<Identity | undefined>;
  /** All identities of a user, in the order of their ids. */
  identitiesOf(userId: string): Promise<Identity[]>;
  /** The names of a user's permissions at an API: their own, and those of their roles. */
  permissionsAt(user: User, identifier: string, roles?: readonly string[]): Promise<string[]>;
  /** The user who has just proved an address; @see userWhoProved */
  whoProved(
    address: ProvedAddress & { asker?: Asker | undefined },
  ): Promise<{ user: User; isNew: boolean } | undefined>;
  /** The user who has just logged in at an upstream provider; @see userFromUpstream */
  fromUpstream(upstream: UpstreamUser): Promise<{ user: User; isNew: boolean } | undefined>;
  /** Keeps what a provider gave for a refresh token; @see renewGrant */
  renewGrant(identityId: string, refreshToken: string, grant: UpstreamGrant): Promise<void>;
  /**
   * Makes a user of any strategy.
   * @returns the new user, or which of their addresses is taken. @throws UniqueKeyError as {@link createUser} does.
   */
  create(
    user: NewUser & { password?: string | undefined; asker?: Asker | undefined },
  ): ReturnType<typeof createUser>;
  /** The hash of a password, for a user who is made later. */
  hash(password: string): Promise<string>;
  /**
   * Whether a password is the user's; takes the same time for no user.
   * @returns the version of the credential that it was right for; undefined when it was wrong.
   */
  verifyPassword(userId: string | undefined, password: string): Promise<number | undefined>;
  /**
   * Reads the user's credential, by which passwords are then verified as {@link verifyPassword} does.
   * @param by as whom they say to be: an identity that was linked has its own password.
   */
  passwordOf(
    userId: string | undefined,
    by?: { connection: NamedConnection; identifier: string },
  ): Promise<PasswordCheck>;
  /** Whether a password is kept of whom an identity was made with. @param home as {@link homeOf} gives it */
  hasPassword(home: string): Promise<boolean>;
  /** Makes a user of somebody who comes from an older database; @see moveUser */
  move(moved: MovedUser): ReturnType<typeof moveUser>;
  /** The user of a database elsewhere, as it has them now; @see mirrorUser */
  mirror(mirrored: MirroredUser): ReturnType<typeof mirrorUser>;
  /** The version of a user's credential; it grows with each password that is set. */
  credentialVersion(userId: string): Promise<number>;
  /**
   * Whether a password is the present one or one of the last `size`.
   * @param home the user, or whom the identity whose password it is was made with ({@link homeOf}).
   */
  isUsedBefore(home: string, password: string, size: number): Promise<boolean>;
  /** @returns false, and nothing was changed, where the credential is of another version than `how` says. */
  setPassword(userId: string, password: string, how?: PasswordChange): Promise<boolean>;
  /**
   * A user's password was set in the database elsewhere where it is kept.
   * @param home as for {@link isUsedBefore} @param also written with it.
   */
  noteNewPassword(userId: string, home: string, also?: readonly Write[]): Promise<void>;
  /** The identity with a name, as typed, in one connection. */
  identityInConnection(connection: NamedConnection, identifier: string): Promise<Identity | undefined>;
  /** Makes another user's identities those of a user, and removes the other; @see linkUser */
  link(userId: string, other: string): Promise<boolean>;
  /** Makes a linked identity a user again, and ends the logins under way, which may be by it; @see unlinkIdentity */
  unlink(userId: string, identityId: string): Promise<boolean>;
  /** Remembers whom a user, being asked by a login, did not want to be linked to; @see declineLink */
  declineLink(login: Pick<Login, 'userId' | 'connection'>, other: string): Promise<void>;
  /** The write that records a login; changes nothing else of the profile. */
  loginNote(userId: string, ip: string): Write;
  /**
   * The user has proved an e-mail address; nothing happens where it is theirs no more. What a sign-up said of them
   * before that was said by somebody who had proved nothing, and goes.
   */
  proveEmail(userId: string, email: string): Promise<void>;
  /**
   * The user's address is theirs, for this account and whoever has its password: they said so themselves.
   * @returns undefined when the user has another address by now, or is gone.
   */
  confirmEmail(userId: string, email: string): Promise<User | undefined>;
  /**
   * Takes an address from who has typed it and never proved it: somebody else has just proved that it is theirs.
   * @returns whether somebody had it so.
   */
  releaseUnproved(held: ConnectionAddress): Promise<boolean>;
  /** @see updateLinked */
  updateLinked(
    userId: string,
    identityId: string,
    patch: Parameters<typeof updateLinked>[3],
  ): Promise<boolean>;
  /** Removes a user, their identities and their credential. */
  remove(userId: string): Promise<void>;
  /**
   * Changes a user's record, and with an address the identities that have it; an e-mail address that was there before
   * is kept for tokens issued till now.
   * @param merge what becomes of the metadata, where it is changed by what it is.
   * @param applies whether to change anything, by what the user is when it is written; else undefined is returned.
   * @throws UniqueKeyError when an address is somebody else's in a connection of theirs.
   */
  update(
    userId: string,
    patch: Partial<UserRecord>,
    merge?: MetadataMerge,
    applies?: (current: User) => boolean,
  ): Promise<User | undefined>;
}

/** How a password is set. */
interface PasswordChange {
  /** As for {@link Users.isUsedBefore}, where it is not the user. */
  home?: string | undefined;
  asker?: Asker | undefined;
  /** Written with the password, where it is kept here. */
  also?: readonly Write[];
  /** The version that the credential must still have: what allowed the change was made for it. */
  version?: number | undefined;
}

/** The users in a store. */
export function createUsers(deps: UsersDependencies): Users {
  const { store, clock } = deps;
  const users = store.collection('users');
  const credentials = createCredentials(deps);
  const now = () => new Date(clock()).toISOString();
  const idInConnection: Users['idInConnection'] = async (connection, identifier) =>
    (await identityByName(store, connection, identifier))?.user_id;
  return {
    get: (id) => users.get(id),
    findInConnection: async (connection, identifier) =>
      users.get((await idInConnection(connection, identifier)) ?? NOBODY),
    idInConnection,
    idByAddress: (address) => idByAddress(store, address),
    findByAddress: (address) => findByAddress(store, address),
    identityOf: (connection, id) => store.collection('identities').get(identityId(connection, id)),
    identitiesOf: (userId) => store.collection('identities').findBy('user', userId),
    permissionsAt: (user, identifier, roles) => permissionsAt(store, user, identifier, roles),
    whoProved: (address) => userWhoProved(deps, address),
    fromUpstream: (upstream) => userFromUpstream(deps, upstream),
    renewGrant: (id, refreshToken, grant) => renewGrant(deps, { id, refreshToken, grant }),
    create: async ({ password, ...user }) => {
      // Hashed before anything is looked up: a taken address answers no sooner than a free one.
      const passwordHash = password === undefined ? user.passwordHash : await deps.hasher.hash(password);
      return createUser(deps, { ...user, passwordHash });
    },
    hash: (password) => deps.hasher.hash(password),
    verifyPassword: credentials.verify,
    passwordOf: async (userId, by) => {
      const identity = by && (await identityByName(store, by.connection, by.identifier));
      return credentials.load(userId, identity && homeOf(identity));
    },
    hasPassword: credentials.has,
    move: (moved) => moveUser(deps, credentials, moved),
    mirror: (mirrored) => mirrorUser(deps, mirrored),
    identityInConnection: (connection, identifier) => identityByName(store, connection, identifier),
    withEmail: (email) => users.findBy('email', email),
    declineLink: (login, other) => declineLink(deps, login, other),
    link: (userId, other) => linkUser(deps, credentials, userId, other),
    unlink: (userId, identityId) => unlinkIdentity(deps, credentials, userId, identityId),
    credentialVersion: credentials.version,
    isUsedBefore: credentials.isUsedBefore,
    setPassword: (userId, password, { home = userId, also = [], version } = {}) =>
      credentials.set(userId, password, { home, also: [resetNote(userId, now), ...also], version }),
    noteNewPassword: (userId, home, also = []) =>
      credentials.setElsewhere(userId, home, [resetNote(userId, now), ...also]),
    loginNote: (userId, ip) => loginNote(userId, ip, now),
    confirmEmail: (userId, email) => confirmEmail(deps, userId, email),
    releaseUnproved: (held) => releaseUnproved(deps, held),
    updateLinked: (userId, identityId, patch) => updateLinked(deps, userId, identityId, patch),
    remove: (userId) => removeUser(deps, userId),
    proveEmail: (userId, email) => proveEmail(deps, userId, email),
    update: (userId, patch, merge, applies) => updateUser(deps, userId, patch, merge, applies),
  };
}

function resetNote(userId: string, now: () => string): Write {
  return {
    collection: 'users',
    update: userId,
    change: (before) => ({ ...before, last_password_reset: now(), updated_at: now() }),
  };
}

function loginNote(userId: string, ip: string, now: () => string): Write {
  return {
    collection: 'users',
    update: userId,
    change: (before) => {
      return { ...before, last_login: now(), last_ip: ip, logins_count: before.logins_count + 1 };
    },
  };
}
