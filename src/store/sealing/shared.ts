// The key of a store that is in a database: the setting SECRETS_KEY, or a file in the directory of each process. All
// processes must have the same one, and each finds out when it starts.
import type { KeyObject } from 'node:crypto';
import { checkOf, keyFile, makeKey, RESTORE, readKey } from './key.ts';
import type { KeySource } from './open.ts';

/**
 * The key that a database's secrets are sealed with, made where there was none yet.
 * @param known the key check value in the database; undefined where nothing was sealed yet
 * @param keep keeps the key check value of a key that is the first
 * @throws Error naming the key when it is missing, no key or another, or cannot be made.
 */
export async function openSharedSealing(
  { dataDir, given, random }: KeySource,
  known: string | undefined,
  keep: (check: string) => Promise<void>,
): Promise<KeyObject> {
  const file = keyFile(dataDir);
  const name = given === undefined ? file : 'SECRETS_KEY';
  const key = given ?? (await readKey(file));
  if (known === undefined) {
    const first = key ?? (await makeKey(file, random));
    await keep(checkOf(first));
    return first;
  }
  if (key === undefined) {
    throw new Error(
      `${name} is missing, which the secrets in the database are sealed with: set SECRETS_KEY to the key of the other processes, or ${RESTORE}`,
    );
  }
  if (checkOf(key) === known) return key;
  throw new Error(
    `${name} is another key than the secrets in the database are sealed with: set SECRETS_KEY to the key of the other processes, or ${RESTORE}`,
  );
}
