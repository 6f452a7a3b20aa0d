// The key of a store in a shared database: the setting SECRETS_KEY, or a file in the data directory of each process.
// All processes must have the same key; each checks this when it starts.
import type { KeyObject } from 'node:crypto';
import { checkOf, keyFile, makeKey, RESTORE, readKey } from './key.ts';
import type { KeySource } from './open.ts';
import { opensWith } from './records.ts';

/** What a database records of the key that its secrets are sealed with. */
interface SealedDatabase {
  /** The key check value; undefined where there is none. */
  known: string | undefined;
  /** Stored texts of some records with sealed members of each collection; read when there is no check value. */
  texts(): AsyncIterable<readonly [collection: string, members: readonly string[], text: string]>;
  /** Stores the check value of the first key, or of the key that opens what is stored. */
  keep(check: string): Promise<void>;
}

/**
 * Returns the key that a database's secrets are sealed with, creating it if nothing was sealed yet.
 * @throws Error naming the key when it is missing, malformed or wrong, or cannot be created.
 */
export async function openSharedSealing(
  { dataDir, given, random }: KeySource,
  { known, texts, keep }: SealedDatabase,
): Promise<KeyObject> {
  const file = keyFile(dataDir);
  const name = given === undefined ? file : 'SECRETS_KEY';
  const key = given ?? (await readKey(file));
  const isRight =
    known !== undefined ? key !== undefined && checkOf(key) === known : await opensSome(key, texts());
  if (isRight === false) {
    const what = key === undefined ? 'is missing, which' : 'is another key than';
    throw new Error(
      `${name} ${what} the secrets in the database are sealed with: set SECRETS_KEY to the key of the other processes, or ${RESTORE}`,
    );
  }
  const first = key ?? (await makeKey(file, random));
  if (known === undefined) await keep(checkOf(first));
  return first;
}

/** Returns whether a key opens any of the records; undefined if nothing in them is sealed. */
async function opensSome(
  key: KeyObject | undefined,
  texts: ReturnType<SealedDatabase['texts']>,
): Promise<boolean | undefined> {
  let some: boolean | undefined;
  for await (const [collection, members, text] of texts) {
    const { any, all } = opensWith(key, collection, members, text);
    if (any && all) return true;
    if (any) some = false;
  }
  return some;
}
