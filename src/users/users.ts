// The users of the tenant: who they are, which connection they are of, what their password is.

import { connectionKey } from '../records/collections.ts';
import { normalizeEmail } from '../records/email.ts';
import type { CredentialRecord, UserRecord } from '../records/users.ts';
import type { Clock } from '../runtime/clock.ts';
import { epochSeconds } from '../runtime/clock.ts';
import { UniqueKeyError } from '../store/contract.ts';
import { FIRST_VERSION } from './login.ts';
import { type ConnectionAddress, findByAddress, userWhoProved } from './proved.ts';
import type { User, UsersDependencies } from './user.ts';

/** What may be said of a new user, beside who they are. */
export type Profile = Partial<
  Pick<
    UserRecord,
    | 'given_name'
    | 'family_name'
    | 'name'
    | 'nickname'
    | 'picture'
    | 'user_metadata'
    | 'app_metadata'
    | 'email_verified'
    | 'blocked'
    | 'multifactor'
    | 'permissions'
  >
>;

export interface NewUser {
  connection: string;
  email: string;
  username?: string;
  password: string;
  profile?: Profile;
}

/** How many earlier passwords are kept, at most; a connection's rule looks at fewer or as many. */
const HISTORY = 24;

export interface Users {
  get(id: string): Promise<User | undefined>;
  /** By e-mail address or username, in one connection. */
  findInConnection(connection: { name: string }, identifier: string): Promise<User | undefined>;
  /** By the address of a passwordless connection. */
  findByAddress(address: ConnectionAddress): Promise<User | undefined>;
  /** The user who has proved an address of a passwordless connection; made if there was none. */
  whoProved(address: ConnectionAddress): Promise<User>;
  /** @returns the new user, or which of its identifiers is taken. */
  create(user: NewUser): Promise<{ user: User } | { taken: 'email' | 'username' }>;
  /**
   * The user when the password is right, and the version of the credential that it was right for; takes the same
   * time when there is no such user.
   */
  verifyPassword(
    connection: { name: string },
    identifier: string,
    password: string,
  ): Promise<{ user: User; credentialVersion: number } | undefined>;
  /** The version of a user's credential; it grows with each password that is set. */
  credentialVersion(userId: string): Promise<number>;
  /** Whether a password is the user's present one or one of the last `size`. */
  isUsedBefore(userId: string, password: string, size: number): Promise<boolean>;
  setPassword(userId: string, password: string): Promise<void>;
  /** Notes a login, beside which the profile stays as it is. */
  recordLogin(userId: string, ip: string): Promise<void>;
  /**
   * The user has proved an e-mail address; nothing happens where it is theirs no more. What a sign-up said of them before that was said by somebody who had
   * proved nothing, and goes.
   */
  proveEmail(userId: string, email: string): Promise<void>;
  /**
   * The user's address is theirs, for this account and whoever has its password: they said so themselves.
   * @returns undefined when the user has another address by now, or is gone.
   */
  confirmEmail(userId: string, email: string): Promise<User | undefined>;
  /** Removes a user and their credential. */
  remove(userId: string): Promise<void>;
  /** Changes a user's record; an e-mail address that was there before is kept for tokens issued till now. */
  update(userId: string, patch: Partial<UserRecord>): Promise<User | undefined>;
}

/** The users in a store. */
export function createUsers(deps: UsersDependencies): Users {
  const { store, hasher, clock } = deps;
  const users = store.collection('users');
  const credentials = store.collection('credentials');
  const now = () => new Date(clock()).toISOString();

  const findInConnection = async (
    { name }: { name: string },
    identifier: string,
  ): Promise<User | undefined> => {
    const email = normalizeEmail(identifier);
    const byEmail =
      email === undefined ? [] : await users.findBy('connectionEmail', connectionKey(name, email));
    if (byEmail[0] !== undefined) return byEmail[0];
    const username = identifier.trim().toLowerCase();
    return (await users.findBy('connectionUsername', connectionKey(name, username)))[0];
  };

  const setPassword = async (userId: string, password: string): Promise<void> => {
    const passwordHash = await hasher.hash(password);
    await credentials.upsert(userId, (current) => ({
      id: userId,
      passwordHash,
      history: current === undefined ? [] : [current.passwordHash, ...current.history].slice(0, HISTORY),
      version: versionOf(current) + 1,
    }));
    await update(userId, { last_password_reset: now() });
  };

  const update = (userId: string, patch: Partial<UserRecord>): Promise<User | undefined> =>
    users.update(userId, (before) => {
      return { ...before, ...patch, id: userId, updated_at: now(), ...emailHistory(before, patch, clock) };
    });

  return {
    get: (id) => users.get(id),
    findInConnection,
    findByAddress: (address) => findByAddress(deps, address),
    whoProved: (address) => userWhoProved(deps, address),
    create: (user) => createUser(deps, user),
    verifyPassword: async (connection, identifier, password) => {
      const user = await findInConnection(connection, identifier);
      const credential = user === undefined ? undefined : await credentials.get(user.id);
      if (user === undefined || credential === undefined) {
        await hasher.verifyNothing(password);
        return undefined;
      }
      const { ok, stale } = await hasher.verify(credential.passwordHash, password);
      if (ok && stale) await rehash(deps, user.id, credential.passwordHash, password);
      return ok ? { user, credentialVersion: versionOf(credential) } : undefined;
    },
    credentialVersion: async (userId) => versionOf(await credentials.get(userId)),
    isUsedBefore: async (userId, password, size) => {
      const credential = await credentials.get(userId);
      if (credential === undefined) return false;
      const hashes = [credential.passwordHash, ...credential.history].slice(0, Math.max(1, size));
      for (const hash of hashes) if ((await hasher.verify(hash, password)).ok) return true;
      return false;
    },
    setPassword,
    recordLogin: async (userId, ip) => {
      await users.update(userId, (before) => {
        return { ...before, last_login: now(), last_ip: ip, logins_count: before.logins_count + 1 };
      });
    },
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
      await users.delete(userId);
      await credentials.delete(userId);
    },
    proveEmail: async (userId, email) => {
      await users.update(userId, (before) => {
        if (before.email_verified || before.email !== email) return before;
        const proved = { email_verified: true, user_metadata: {}, updated_at: now() };
        return { ...withoutProfile(before), ...proved, ...emailHistory(before, proved, clock) };
      });
    },
    update,
  };
}

/** Without what a sign-up may say of its user, beside the identifiers. */
function withoutProfile(user: User): User {
  const { name: _1, given_name: _2, family_name: _3, nickname: _4, picture: _5, ...rest } = user;
  return rest;
}

async function createUser(
  { store, hasher, clock, random }: UsersDependencies,
  { connection, email, username, password, profile = {} }: NewUser,
): Promise<{ user: User } | { taken: 'email' | 'username' }> {
  const hex = random(12).toString('hex');
  const id = `auth0|${hex}`;
  const at = new Date(clock()).toISOString();
  const record: UserRecord = {
    id,
    email: normalizeEmail(email) ?? email,
    email_verified: false,
    ...(username === undefined ? {} : { username: username.trim().toLowerCase() }),
    user_metadata: {},
    app_metadata: {},
    ...profile,
    identities: [{ provider: 'auth0', user_id: hex, connection, isSocial: false }],
    created_at: at,
    updated_at: at,
    logins_count: 0,
  };
  // Hashed before anything is looked up: a taken address answers no sooner than a free one.
  const passwordHash = await hasher.hash(password);
  const credential: CredentialRecord = { id, passwordHash, history: [] };
  // The credential first: a user without one could never log in, one without a user harms nobody.
  await store.collection('credentials').insert(credential);
  try {
    await store.collection('users').insert(record);
  } catch (thrown) {
    await store.collection('credentials').delete(id);
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    return { taken: thrown.key === 'connectionUsername' ? 'username' : 'email' };
  }
  const user = await store.collection('users').get(id);
  if (user === undefined) throw new Error('the new user is not in the store');
  return { user };
}

function versionOf(credential: { readonly version?: number } | undefined): number {
  return credential?.version ?? FIRST_VERSION;
}

/** An old hash is replaced unless the password was changed meanwhile. */
async function rehash({ store, hasher }: UsersDependencies, userId: string, old: string, password: string) {
  const passwordHash = await hasher.hash(password);
  await store.collection('credentials').update(userId, (current) => ({
    ...current,
    passwordHash: current.passwordHash === old ? passwordHash : current.passwordHash,
  }));
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
