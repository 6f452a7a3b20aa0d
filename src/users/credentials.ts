// The passwords of users: kept as hashes, with those of earlier ones for the connections' history rule.
import type { CredentialRecord } from '../records/users.ts';
import { FIRST_VERSION } from './login.ts';
import type { UsersDependencies } from './user.ts';

/** How many earlier passwords are kept, at most; a connection's rule looks at fewer or as many. */
const HISTORY = 24;

/** Whether a password is right; @see Credentials.verify */
export type PasswordCheck = (password: string) => Promise<number | undefined>;

interface Credentials {
  /**
   * Whether a password is the user's; takes the same time for no user.
   * @returns the version of the credential that it was right for; undefined when it was wrong.
   */
  verify(userId: string | undefined, password: string): Promise<number | undefined>;
  /** Reads the credential that passwords are then verified by, as {@link verify} does. */
  load(userId: string | undefined): Promise<PasswordCheck>;
  /** The version of a user's credential; it grows with each password that is set. */
  version(userId: string): Promise<number>;
  /** Whether a password is the user's present one or one of the last `size`. */
  isUsedBefore(userId: string, password: string, size: number): Promise<boolean>;
  /** Sets a password in place of the one there is. */
  set(userId: string, password: string): Promise<void>;
}

/** The credentials in a store. */
export function createCredentials({ store, hasher }: UsersDependencies): Credentials {
  const credentials = store.collection('credentials');
  const load = async (userId: string | undefined): Promise<PasswordCheck> => {
    const credential = userId === undefined ? undefined : await credentials.get(userId);
    return async (password) => {
      if (credential === undefined) {
        await hasher.verifyNothing(password);
        return undefined;
      }
      const { id, passwordHash: old } = credential;
      const { ok, stale } = await hasher.verify(old, password);
      if (ok && stale) {
        const passwordHash = await hasher.hash(password);
        // Unless the password was changed meanwhile.
        await credentials.update(id, (current) => {
          return {
            ...current,
            passwordHash: current.passwordHash === old ? passwordHash : current.passwordHash,
          };
        });
      }
      return ok ? versionOf(credential) : undefined;
    };
  };
  return {
    load,
    verify: async (userId, password) => (await load(userId))(password),
    version: async (userId) => versionOf(await credentials.get(userId)),
    isUsedBefore: async (userId, password, size) => {
      const credential = await credentials.get(userId);
      if (credential === undefined) return false;
      const hashes = [credential.passwordHash, ...credential.history].slice(0, Math.max(1, size));
      for (const hash of hashes) if ((await hasher.verify(hash, password)).ok) return true;
      return false;
    },
    set: async (userId, password) => {
      const passwordHash = await hasher.hash(password);
      await credentials.upsert(userId, (current) => ({
        id: userId,
        passwordHash,
        history: current === undefined ? [] : [current.passwordHash, ...current.history].slice(0, HISTORY),
        version: versionOf(current) + 1,
      }));
    },
  };
}

function versionOf(credential: Pick<Readonly<CredentialRecord>, 'version'> | undefined): number {
  return credential?.version ?? FIRST_VERSION;
}
