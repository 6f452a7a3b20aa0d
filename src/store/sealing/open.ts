// Opens the key of a store. The key is verified by its check value before anything is decrypted with it; values of members
// that the release before did not seal are sealed, once.
import type { KeyObject } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Random } from '../../runtime/secrets.ts';
import { configurationSpecs } from '../create.ts';
import { openConfiguration } from '../lowdb/lowdb-file.ts';
import { parseRecord } from '../record.ts';
import { checksum } from '../sql/row.ts';
import { sqlCollections } from '../sql/schema.ts';
import { checkOf, keyFile, keyIn, makeKey, RESTORE } from './key.ts';
import { opensWith, sealRest } from './records.ts';
import { type Rewrite, rewriteConfiguration, rewriteDatabase, sealedTexts, withDatabase } from './rewrite.ts';

export interface KeySource {
  dataDir: string;
  /** The key from the setting SECRETS_KEY; without it the key is in a file. */
  given: KeyObject | undefined;
  random: Random;
}

/** The ids of key check values: of the present key, and of the previous one while everything is sealed anew. */
export const CHECK = 'secrets';
export const CHECK_BEFORE = 'secrets-before';

/**
 * Returns the key that a store's secrets are sealed with, creating it if nothing was sealed yet, and seals what is not
 * sealed.
 * @param directory the store's, with its database checked
 * @throws Error naming the key when it is missing, malformed or wrong, or cannot be created.
 */
export async function openSealing(directory: string, source: KeySource): Promise<KeyObject> {
  const key = await findKey(directory, source);
  const rewrite: Rewrite = (collection, members, text) => sealRest(key, collection, members, text);
  const declared = JSON.stringify(sqlCollections().map(({ name, spec }) => [name, spec.sealed ?? []]));
  withDatabase(directory, (database) => {
    const done = database.prepare("SELECT value FROM meta WHERE name = 'sealed'").get()?.value === declared;
    if (done && checkIn(database, CHECK) !== undefined) return;
    rewriteDatabase(database, rewrite, () => {
      putCheck(database, CHECK, checkOf(key));
      database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('sealed', ?)").run(declared);
    });
  });
  await rewriteConfiguration(directory, rewrite);
  return key;
}

async function findKey(directory: string, { dataDir, given, random }: KeySource): Promise<KeyObject> {
  const file = keyFile(dataDir);
  const name = given === undefined ? file : 'SECRETS_KEY';
  const { currentCheck, previousCheck } = withDatabase(directory, (database) => ({
    currentCheck: checkIn(database, CHECK),
    previousCheck: checkIn(database, CHECK_BEFORE),
  }));
  if (previousCheck !== undefined) {
    throw new Error(`${directory} is sealed with two keys: run \`gatehouse keys reseal\` again to its end`);
  }
  const key = given ?? (await keyIn(file));
  const isRight =
    currentCheck !== undefined
      ? key !== undefined && checkOf(key) === currentCheck
      : await opensSome(directory, key);
  if (isRight === false && key === undefined) {
    throw new Error(`${name} is missing, which the secrets in the store are sealed with: ${RESTORE}`);
  }
  if (isRight === false) {
    throw new Error(`${name} is another key than the secrets in the store are sealed with: ${RESTORE}`);
  }
  return key ?? makeKey(file, random);
}

/**
 * For a store that a repair has left without its check value: returns whether the key opens any sealed value; undefined if nothing is sealed.
 */
async function opensSome(directory: string, key: KeyObject | undefined): Promise<boolean | undefined> {
  let some: boolean | undefined;
  for await (const [name, members, text] of allSealed(directory)) {
    const { any, all } = opensWith(key, name, members, text);
    if (any && all) return true;
    if (any) some = false;
  }
  return some;
}

async function* allSealed(directory: string): AsyncGenerator<[string, readonly string[], string]> {
  for (const [name, { sealed }] of configurationSpecs()) {
    if (sealed === undefined) continue;
    const { data } = await openConfiguration(directory, name);
    for (const text of data.values()) yield [name, sealed, text];
  }
  for (const { name, spec } of sqlCollections()) {
    const { sealed } = spec;
    if (sealed === undefined) continue;
    const texts = withDatabase(directory, (database) =>
      [...sealedTexts(database, name)].map(({ text }) => text),
    );
    for (const text of texts) yield [name, sealed, text];
  }
}

export function checkIn(database: DatabaseSync, id: string): string | undefined {
  const row = database.prepare('SELECT data FROM "keyChecks" WHERE id = ?').get(id);
  if (row === undefined) return undefined;
  const { value }: Record<string, unknown> = { ...parseRecord(String(row.data)) };
  return String(value);
}

export function putCheck(database: DatabaseSync, id: string, value: string): void {
  const text = JSON.stringify({ id, value });
  database
    .prepare('INSERT OR REPLACE INTO "keyChecks" (id, data, sum) VALUES (?, ?, ?)')
    .run(id, text, checksum('keyChecks', text));
}

export function removeCheck(database: DatabaseSync, id: string): void {
  database.prepare('DELETE FROM "keyChecks" WHERE id = ?').run(id);
}
