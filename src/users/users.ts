// The users of the tenant: who they are, by which identities they come, what their password is.
import { DATABASE, STRATEGIES } from '../records/connections.ts';
import { normalizeEmail } from '../records/email.ts';
import { ADDRESS_KINDS, type AddressKind } from '../records/identities.ts';
import type { UserRecord } from '../records/users.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Write } from '../store/contract.ts';
import { createUser, type Profile } from './create.ts';
import { createCredentials, type PasswordCheck } from './credentials.ts';
import { type ConnectionAddress, findByAddress, type Identity, idByAddress, NOBODY } from './identities.ts';
import { type ProvedAddress, userWhoProved } from './proved.ts';
import type { User, UsersDependencies } from './user.ts';

/** A user of a database connection. */
export interface NewDatabaseUser {
  /** The connection's name. */
  connection: string;
  email: string;
  username?: string | undefined;
  password: string;
  profile?: Profile | undefined;
}

export interface Users {
  get(id: string): Promise<User | undefined>;
  /** By e-mail address or username, as typed, in one connection. */
  findInConnection(connection: { name: string }, identifier: string): Promise<User | undefined>;
  /**
   * The id of the user whom {@link findInConnection} finds, so that the user is read beside what else a login asks.
   * @returns undefined where there is none.
   */
  idInConnection(connection: { name: string }, identifier: string): Promise<string | undefined>;
  /** The id of the user with an address in one connection. */
  idByAddress(address: ConnectionAddress): Promise<string | undefined>;
  /** By an address in one connection. */
  findByAddress(address: ConnectionAddress): Promise<User | undefined>;
  /** All identities of a user, in the order of their ids. */
  identitiesOf(userId: string): Promise<Identity[]>;
  /** The user who has just proved an address; @see userWhoProved */
  whoProved(address: ProvedAddress): Promise<{ user: User; isNew: boolean } | undefined>;
  /** @returns the new user, or which of its addresses is taken. */
  create(user: NewDatabaseUser): Promise<{ user: User; identity: Identity } | { taken: AddressKind }>;
  /**
   * Whether a password is the user's; takes the same time for no user.
   * @returns the version of the credential that it was right for; undefined when it was wrong.
   */
  verifyPassword(userId: string | undefined, password: string): Promise<number | undefined>;
  /** Reads the user's credential, by which passwords are then verified as {@link verifyPassword} does. */
  passwordOf(userId: string | undefined): Promise<PasswordCheck>;
  /** The version of a user's credential; it grows with each password that is set. */
  credentialVersion(userId: string): Promise<number>;
  /** Whether a password is the user's present one or one of the last `size`. */
  isUsedBefore(userId: string, password: string, size: number): Promise<boolean>;
  setPassword(userId: string, password: string): Promise<void>;
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
  /** Removes a user, their identities and their credential. */
  remove(userId: string): Promise<void>;
  /**
   * Changes a user's record, and with an address the identities that have it; an e-mail address that was there before
   * is kept for tokens issued till now.
   * @throws UniqueKeyError when an address is somebody else's in a connection of theirs.
   */
  update(userId: string, patch: Partial<UserRecord>): Promise<User | undefined>;
}

/** The users in a store. */
export function createUsers(deps: UsersDependencies): Users {
  const { store, hasher, clock } = deps;
  const users = store.collection('users');
  const identities = store.collection('identities');
  const credentials = createCredentials(deps);
  const now = () => new Date(clock()).toISOString();
  const idInConnection: Users['idInConnection'] = async ({ name: connection }, identifier) => {
    const email = normalizeEmail(identifier);
    const byEmail = email && (await idByAddress(store, { connection, kind: 'email', address: email }));
    if (byEmail) return byEmail;
    const address = identifier.trim().toLowerCase();
    return idByAddress(store, { connection, kind: 'username', address });
  };
  return {
    get: (id) => users.get(id),
    findInConnection: async (connection, identifier) =>
      users.get((await idInConnection(connection, identifier)) ?? NOBODY),
    idInConnection,
    idByAddress: (address) => idByAddress(store, address),
    findByAddress: (address) => findByAddress(store, address),
    identitiesOf: (userId) => identities.findBy('user', userId),
    whoProved: (address) => userWhoProved(deps, address),
    create: async ({ connection, email, username, password, profile }) =>
      createUser(deps, {
        identity: {
          connection,
          provider: DATABASE,
          addresses: {
            email: normalizeEmail(email) ?? email,
            ...(username !== undefined && { username: username.trim().toLowerCase() }),
          },
          unique: STRATEGIES[DATABASE].unique,
        },
        profile,
        // Hashed before anything is looked up: a taken address answers no sooner than a free one.
        passwordHash: await hasher.hash(password),
      }),
    verifyPassword: credentials.verify,
    passwordOf: credentials.load,
    credentialVersion: credentials.version,
    isUsedBefore: credentials.isUsedBefore,
    setPassword: async (userId, password) => {
      await credentials.set(userId, password);
      await users.update(userId, (before) => ({ ...before, last_password_reset: now(), updated_at: now() }));
    },
    loginNote: (userId, ip) => ({
      collection: 'users',
      update: userId,
      change: (before) => {
        return { ...before, last_login: now(), last_ip: ip, logins_count: before.logins_count + 1 };
      },
    }),
    confirmEmail: async (userId, email) => {
      let isTheirs = false;
      const updated = await users.update(userId, (before) => {
        isTheirs = before.email === email;
        const proved = { email_verified: true, updated_at: now() };
        return isTheirs ? { ...before, ...proved, ...emailHistory(before, proved, clock) } : before;
      });
      return isTheirs ? updated : undefined;
    },
    remove: async (userId) => {
      const all = await identities.findBy('user', userId);
      await store.batch([
        { collection: 'users', delete: userId },
        { collection: 'credentials', delete: userId },
        ...all.map(({ id }) => ({ collection: 'identities' as const, delete: id })),
      ]);
    },
    proveEmail: async (userId, email) => {
      await users.update(userId, (before) => {
        if (before.email_verified || before.email !== email) return before;
        const proved = { email_verified: true, user_metadata: {}, updated_at: now() };
        return { ...withoutProfile(before), ...proved, ...emailHistory(before, proved, clock) };
      });
    },
    update: (userId, patch) =>
      updateUser(deps, userId, patch, (before) => ({
        ...before,
        ...patch,
        id: userId,
        updated_at: now(),
        ...emailHistory(before, patch, clock),
      })),
  };
}

/** Changes a user and, in the same write, the identities that are found by an address that changes. */
async function updateUser(
  { store }: UsersDependencies,
  userId: string,
  patch: Partial<UserRecord>,
  change: (before: User) => User,
): Promise<User | undefined> {
  const kinds = ADDRESS_KINDS.filter((kind) => kind in patch);
  if (kinds.length === 0) return store.collection('users').update(userId, change);
  const identities = await store.collection('identities').findBy('user', userId);
  let before: User | undefined;
  let after: User | undefined;
  await store.batch([
    {
      collection: 'users',
      update: userId,
      change: (current) => {
        before = current;
        after = change(current);
        return after;
      },
    },
    ...identities.map(
      ({ id }): Write => ({
        collection: 'identities',
        update: id,
        change: (identity) => {
          const moved = kinds.filter((kind) => identity[kind] === before?.[kind]);
          return { ...identity, ...Object.fromEntries(moved.map((kind) => [kind, patch[kind]])) };
        },
      }),
    ),
  ]);
  return after;
}

/** Without what a sign-up may say of its user, beside the identifiers. */
function withoutProfile(user: User): User {
  const { name: _1, given_name: _2, family_name: _3, nickname: _4, picture: _5, ...rest } = user;
  return rest;
}

/** Longer than any access token lives, by default: after that nobody asks for the address of back then. */
const EMAIL_HISTORY = 20;

function emailHistory(before: User, patch: Partial<UserRecord>, clock: Clock): Partial<User> {
  const changes =
    ('email' in patch && patch.email !== before.email) ||
    ('email_verified' in patch && patch.email_verified !== before.email_verified);
  if (!changes) return {};
  const entry = {
    ...(before.email === undefined ? {} : { email: before.email }),
    email_verified: before.email_verified,
    until: epochSeconds(clock),
  };
  return { email_history: [...(before.email_history ?? []), entry].slice(-EMAIL_HISTORY) };
}
