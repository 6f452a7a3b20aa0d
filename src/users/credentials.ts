// The passwords of users, stored as hashes, with the hashes of earlier passwords for the history rule of connections.
import type { Frozen } from '../records/base/record.ts';
import type { CredentialRecord } from '../records/users/users.ts';
import type { Write } from '../store/contract.ts';
import { FIRST_VERSION } from './login.ts';
import type { UsersDependencies } from './user.ts';

/** How many hashes of earlier passwords are kept; a connection's rule compares at most as many. */
const HISTORY = 24;

/** Stored in place of a hash if there is no password here. No password matches it. */
export const NO_PASSWORD = '';

/** Verifies a password; see {@link Credentials.verify}. */
export type PasswordCheck = (password: string) => Promise<number | undefined>;

export interface Credentials {
  /**
   * It takes the same time without a user.
   * @returns the version of the credential; undefined if the password is wrong.
   */
  verify(userId: string | undefined, password: string): Promise<number | undefined>;
  /**
   * Reads a credential and returns a function that verifies passwords by it, as {@link verify} does.
   * @param home the id under which the password is stored ({@link homeOf}); for a linked identity this is not the user's id.
   *   The version is always the user's.
   */
  load(userId: string | undefined, home?: string): Promise<PasswordCheck>;
  /** Returns the version of a user's credential, which increases with each password that is set. */
  version(userId: string): Promise<number>;
  /** Returns whether a password is one of the last `size`, including the present one. @param home as for {@link load} */
  isUsedBefore(home: string, password: string, size: number): Promise<boolean>;
  /** @returns false if the user's credential does not have `how.version`; nothing is written then. */
  set(userId: string, password: string, how: Replacement): Promise<boolean>;
  /** Removes the password here and raises the version, after a password was set in a custom database. */
  clear(userId: string, home: string, also: readonly Write[]): Promise<void>;
  /** Raises the version without changing the password, so that logins under way end. */
  raiseVersion(userId: string): Promise<void>;
  /**
   * Stores a credential without a password unless there is one, so that {@link refuseStoredPassword} refuses a new user with
   * that id.
   * @param home as for {@link load}
   */
  reserve(home: string): Promise<void>;
  /** Returns whether a password is stored. @param home as for {@link load} */
  has(home: string): Promise<boolean>;
  /**
   * Sets a password if there is none yet; otherwise does nothing.
   * @param home as for {@link load}.
   * @param also written in the same batch.
   * @returns whether it was set.
   */
  setFirst(home: string, passwordHash: string, also: readonly Write[]): Promise<boolean>;
}

/** How a password replaces another. */
interface Replacement {
  /** As for {@link Credentials.load}. */
  home: string;
  /** Written in the same batch. */
  also: readonly Write[];
  /** The version that the user's credential must have; any if undefined. */
  version?: number | undefined;
}

/** Thrown within a batch, which then changes nothing, if the credential is not in the expected state. */
const CHANGED = new Error('the credential has changed');

const historyAfter = ({ passwordHash, history }: Frozen<CredentialRecord>) =>
  [passwordHash, ...history].filter((hash) => hash !== NO_PASSWORD).slice(0, HISTORY);

/** Returns a credential without a password. @param id as `home` of {@link Credentials.load} */
export const emptyCredential = (id: string): CredentialRecord => ({
  id,
  passwordHash: NO_PASSWORD,
  history: [],
});

/** Raises the version of a user's credential, as {@link Credentials.raiseVersion} does, in one commit with other writes. */
export async function raiseVersionWith(
  store: UsersDependencies['store'],
  userId: string,
  also: readonly Write[],
): Promise<void> {
  await reserve(store, userId);
  await store.batch([...also, { collection: 'credentials', update: userId, change: withNextVersion }]);
}

const withNextVersion = (current: Frozen<CredentialRecord>): CredentialRecord => ({
  ...current,
  history: [...current.history],
  version: versionOf(current) + 1,
});

/** @see Credentials.reserve */
async function reserve(store: UsersDependencies['store'], home: string): Promise<void> {
  await store.collection('credentials').upsert(home, (current) => current ?? emptyCredential(home));
}

export function createCredentials({ store, hasher }: UsersDependencies): Credentials {
  const credentials = store.collection('credentials');
  const versionOfUser = async (userId: string) => versionOf(await credentials.get(userId));
  const load = async (userId: string | undefined, home = userId): Promise<PasswordCheck> => {
    const [credential, version] = await Promise.all([
      home === undefined ? undefined : credentials.get(home),
      userId === home || userId === undefined ? undefined : versionOfUser(userId),
    ]);
    return (password) => check({ store, hasher }, { credential, version }, password);
  };
  const raiseVersion = async (userId: string): Promise<void> => {
    await credentials.upsert(userId, (current) => withNextVersion(current ?? emptyCredential(userId)));
  };
  const replace = async (userId: string, passwordHash: string, { home, also, version }: Replacement) => {
    const change = (current: Frozen<CredentialRecord>): CredentialRecord => ({
      id: home,
      passwordHash,
      history: passwordHash === NO_PASSWORD ? [] : historyAfter(current),
      version: versionOf(current) + 1,
    });
    await reserve(store, home);
    if (version !== undefined) await reserve(store, userId);
    const first = version === undefined ? [] : [requireVersion(userId, version)];
    await store.batch([...first, { collection: 'credentials', update: home, change }, ...also]);
    // The version is the user's, whichever of their passwords was set. It is raised after the hash was written, so that no
    // login with the old password gets the new version.
    if (home !== userId) await raiseVersion(userId);
  };
  return {
    load,
    verify: async (userId, password) => (await load(userId))(password),
    version: versionOfUser,
    raiseVersion,
    reserve: (home) => reserve(store, home),
    has: async (home) => ![undefined, NO_PASSWORD].includes((await credentials.get(home))?.passwordHash),
    setFirst: async (home, passwordHash, also) => {
      await reserve(store, home);
      const change = (current: Frozen<CredentialRecord>): CredentialRecord => {
        if (current.passwordHash !== NO_PASSWORD) throw CHANGED;
        return { ...current, history: [...current.history], passwordHash };
      };
      return unlessChanged(store.batch([{ collection: 'credentials', update: home, change }, ...also]));
    },
    isUsedBefore: async (home, password, size) => {
      const credential = await credentials.get(home);
      if (credential === undefined) return false;
      const hashes = [credential.passwordHash, ...credential.history]
        .slice(0, Math.max(1, size))
        .filter((hash) => hash !== NO_PASSWORD);
      for (const hash of hashes) if ((await hasher.verify(hash, password)).ok) return true;
      return false;
    },
    set: async (userId, password, how) => unlessChanged(replace(userId, await hasher.hash(password), how)),
    clear: (userId, home, also) => replace(userId, NO_PASSWORD, { home, also }),
  };
}

/** Returns false if a batch was abandoned with CHANGED; true if it was written. */
async function unlessChanged(writing: Promise<void>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch (thrown) {
    if (thrown === CHANGED) return false;
    throw thrown;
  }
}

/**
 * Returns a write that abandons its batch if the user's credential has another version, and raises the version. So of several
 * batches for one version, one succeeds.
 */
function requireVersion(userId: string, version: number): Write {
  return {
    collection: 'credentials',
    update: userId,
    change: (current) => {
      if (versionOf(current) !== version) throw CHANGED;
      return { ...current, version: version + 1 };
    },
  };
}

/** Verifies a password, and hashes it anew if the hash has older parameters. @returns as {@link PasswordCheck} */
async function check(
  { store, hasher }: Pick<UsersDependencies, 'store' | 'hasher'>,
  { credential, version }: { credential: Frozen<CredentialRecord> | undefined; version: number | undefined },
  password: string,
): Promise<number | undefined> {
  if (credential === undefined || credential.passwordHash === NO_PASSWORD) {
    await hasher.verifyNothing(password);
    return undefined;
  }
  const { id, passwordHash: old } = credential;
  const { ok, stale } = await hasher.verify(old, password);
  if (ok && stale) {
    const passwordHash = await hasher.hash(password);
    // The new hash is not stored if the password was changed meanwhile.
    await store.collection('credentials').update(id, (current) => ({
      ...current,
      passwordHash: current.passwordHash === old ? passwordHash : current.passwordHash,
    }));
  }
  return ok ? (version ?? versionOf(credential)) : undefined;
}

export function versionOf(credential: Pick<Readonly<CredentialRecord>, 'version'> | undefined): number {
  return credential?.version ?? FIRST_VERSION;
}
