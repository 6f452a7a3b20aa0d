// The key of a store that is in a database: the setting SECRETS_KEY, or a file in the directory of each process. All
// processes must have the same one, and each finds out when it starts.
import type { KeyObject } from 'node:crypto';
import { checkOf, keyFile, makeKey, RESTORE, readKey } from './key.ts';
import type { KeySource } from './open.ts';
import { opensWith } from './records.ts';

/** What a database tells of the key that its secrets are sealed with. */
interface SealedDatabase {
  /** The key check value; undefined where there is none. */
  known: string | undefined;
  /** Stored texts of records with sealed members, some of each collection: looked at where there is no check value. */
  texts(): AsyncIterable<readonly [collection: string, members: readonly string[], text: string]>;
  /** Keeps the check value of the key that is the first, or that opens what is there. */
  keep(check: string): Promise<void>;
}

/**
 * The key that a database's secrets are sealed with, made where nothing was sealed yet.
 * @throws Error naming the key when it is missing, no key or another, or cannot be made.
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

/** Whether a key opens one of the records; undefined where nothing in them is sealed. */
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
