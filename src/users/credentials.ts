// The passwords of users: kept as hashes, with those of earlier ones for the connections' history rule.
import type { Frozen } from '../records/record.ts';
import type { CredentialRecord } from '../records/users.ts';
import type { Write } from '../store/contract.ts';
import { FIRST_VERSION } from './login.ts';
import type { UsersDependencies } from './user.ts';

/** How many earlier passwords are kept, at most; a connection's rule looks at fewer or as many. */
const HISTORY = 24;

/** In place of a hash, of a user whose passwords are those of linked identities alone: no password has it. */
const NONE = '';

/** Whether a password is right; @see Credentials.verify */
export type PasswordCheck = (password: string) => Promise<number | undefined>;

export interface Credentials {
  /**
   * Whether a password is the user's; takes the same time for no user.
   * @returns the version of the credential that it was right for; undefined when it was wrong.
   */
  verify(userId: string | undefined, password: string): Promise<number | undefined>;
  /**
   * Reads the credential that passwords are then verified by, as {@link verify} does.
   * @param home whose it is kept as, see {@link homeOf}: of an identity that was linked not the user's id. The version
   *   is that of the user in any case.
   */
  load(userId: string | undefined, home?: string): Promise<PasswordCheck>;
  /** The version of a user's credential; it grows with each password that is set. */
  version(userId: string): Promise<number>;
  /** Whether a password is the present one or one of the last `size`. @param home as for {@link load} */
  isUsedBefore(home: string, password: string, size: number): Promise<boolean>;
  /**
   * Sets a password in place of the one there is.
   * @returns false, and nothing was written, where the user's credential is of another version than the one named.
   */
  set(userId: string, password: string, how: Replacing): Promise<boolean>;
  /** A password was set elsewhere: there is none here any more, and what the one before let in ends. */
  setElsewhere(userId: string, home: string, also: readonly Write[]): Promise<void>;
  /** What was proved of a user so far counts no more, though their password stays: a login under way ends. */
  outdate(userId: string): Promise<void>;
  /** Keeps the place of a password where there is none: a new user of that id is then refused. @param home as for {@link load} */
  reserve(home: string): Promise<void>;
  /** Whether there is a password. @param home as for {@link load} */
  has(home: string): Promise<boolean>;
  /**
   * Sets a password where there is none yet.
   * @param home as for {@link load}.
   * @param also what is written with it, or not at all.
   */
  setFirst(home: string, passwordHash: string, also: readonly Write[]): Promise<void>;
}

/** How a password takes the place of another. */
interface Replacing {
  /** As for {@link Credentials.load}. */
  home: string;
  /** What is written with it. */
  also: readonly Write[];
  /** The version that the user's credential must have. */
  version?: number | undefined;
}

/** Thrown within a batch, which then changes nothing: the credential is not what the batch was made for. */
const CHANGED = new Error('the credential has changed');

const historyAfter = ({ passwordHash, history }: Frozen<CredentialRecord>) =>
  [passwordHash, ...history].filter((hash) => hash !== NONE).slice(0, HISTORY);

/** The credentials in a store. */
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
  const outdate = async (userId: string): Promise<void> => {
    await credentials.upsert(userId, (current) => ({
      ...(current ?? { id: userId, passwordHash: NONE, history: [] }),
      version: versionOf(current) + 1,
    }));
  };
  const reserve = async (home: string): Promise<void> => {
    await credentials.upsert(home, (current) => current ?? { id: home, passwordHash: NONE, history: [] });
  };
  const replace = async (userId: string, passwordHash: string, { home, also, version }: Replacing) => {
    const change = (current: Frozen<CredentialRecord>): CredentialRecord => ({
      id: home,
      passwordHash,
      history: passwordHash === NONE ? [] : historyAfter(current),
      version: versionOf(current) + 1,
    });
    await reserve(home);
    if (version !== undefined) await reserve(userId);
    const first = version === undefined ? [] : [onlyFrom(userId, version)];
    await store.batch([...first, { collection: 'credentials', update: home, change }, ...also]);
    // The version is the user's, whichever of their passwords it was: after the hash, so that no login by the old one
    // has the new version.
    if (home !== userId) await outdate(userId);
  };
  return {
    load,
    verify: async (userId, password) => (await load(userId))(password),
    version: versionOfUser,
    outdate,
    reserve,
    has: async (home) => ![undefined, NONE].includes((await credentials.get(home))?.passwordHash),
    setFirst: async (home, passwordHash, also) => {
      await reserve(home);
      const change = (current: Frozen<CredentialRecord>): CredentialRecord => {
        if (current.passwordHash !== NONE) throw CHANGED;
        return { ...current, history: [...current.history], passwordHash };
      };
      await unlessChanged(store.batch([{ collection: 'credentials', update: home, change }, ...also]));
    },
    isUsedBefore: async (home, password, size) => {
      const credential = await credentials.get(home);
      if (credential === undefined) return false;
      const hashes = [credential.passwordHash, ...credential.history]
        .slice(0, Math.max(1, size))
        .filter((hash) => hash !== NONE);
      for (const hash of hashes) if ((await hasher.verify(hash, password)).ok) return true;
      return false;
    },
    set: async (userId, password, how) => unlessChanged(replace(userId, await hasher.hash(password), how)),
    setElsewhere: (userId, home, also) => replace(userId, NONE, { home, also }),
  };
}

/** @returns whether it was written. */
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
 * A write that fails its whole batch where the user's credential has another version. It counts the version up: of several
 * batches that name the same version, one passes.
 */
function onlyFrom(userId: string, version: number): Write {
  return {
    collection: 'credentials',
    update: userId,
    change: (current) => {
      if (versionOf(current) !== version) throw CHANGED;
      return { ...current, version: version + 1 };
    },
  };
}

/** Verifies a password, and has it hashed anew where the hash is of older parameters. @returns as {@link PasswordCheck} */
async function check(
  { store, hasher }: Pick<UsersDependencies, 'store' | 'hasher'>,
  { credential, version }: { credential: Frozen<CredentialRecord> | undefined; version: number | undefined },
  password: string,
): Promise<number | undefined> {
  if (credential === undefined || credential.passwordHash === NONE) {
    await hasher.verifyNothing(password);
    return undefined;
  }
  const { id, passwordHash: old } = credential;
  const { ok, stale } = await hasher.verify(old, password);
  if (ok && stale) {
    const passwordHash = await hasher.hash(password);
    // Unless the password was changed meanwhile.
    await store.collection('credentials').update(id, (current) => ({
      ...current,
      passwordHash: current.passwordHash === old ? passwordHash : current.passwordHash,
    }));
  }
  return ok ? (version ?? versionOf(credential)) : undefined;
}

function versionOf(credential: Pick<Readonly<CredentialRecord>, 'version'> | undefined): number {
  return credential?.version ?? FIRST_VERSION;
}
