// Commands for the key of a store that no server has open: seal everything with another key, and give up what a lost
// key has sealed.
import type { KeyObject } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SIGNING_ALGS } from '../../records/base/signing-algs.ts';
import { signingCheck } from '../../records/state/engine.ts';
import { syncDirectory } from '../../runtime/files.ts';
import { databaseFile, expectStore } from '../create.ts';
import { lockDirectory } from '../lock.ts';
import { parseRecord } from '../record.ts';
import { checkDatabase } from '../sqlite/sqlite-file.ts';
import { checkOf, keyFile, keyIn, makeKey } from './key.ts';
import type { KeySource } from './open.ts';
import { CHECK, CHECK_BEFORE, checkIn, putCheck, removeCheck } from './open.ts';
import { isSealed, mapMembers, opensWith, openValue, sealValue } from './records.ts';
import { type Rewrite, rewriteConfiguration, rewriteDatabase, withDatabase } from './rewrite.ts';

interface Keys {
  key: KeyObject;
  before: KeyObject;
}

/**
 * Seals all secrets of a store with another key: SECRETS_KEY if it is set, otherwise a new key in the key's file. If it
 * is interrupted, run it again to finish.
 * @param source.before the present key, if it is not in the key's file
 * @throws Error when a server has the store open, or none of the keys is the one it is sealed with.
 */
export async function resealStore(source: KeySource & { before: KeyObject | undefined }): Promise<void> {
  const file = keyFile(source.dataDir);
  await withStore(source.dataDir, async (directory) => {
    const { key, before } = await chooseKeys(directory, source);
    const rewrite = sealingAnew(key, before);
    await rewriteConfiguration(directory, rewrite);
    withDatabase(directory, (database) => rewriteDatabase(database, rewrite, () => undefined));
    await keepKey(file, { key, before });
    withDatabase(directory, (database) => removeCheck(database, CHECK_BEFORE));
  });
}

/** Moves a new key to the place of the key's file, or deletes that file if the key is now a setting. */
export async function keepKey(
  file: string,
  { key, before }: { key: KeyObject; before?: KeyObject },
): Promise<void> {
  const made = await keyIn(newFile(file));
  if (made?.equals(key) === true) await rename(newFile(file), file);
  else if (before !== undefined && (await keyIn(file))?.equals(before) === true) await rm(file);
  await syncDirectory(dirname(file)).catch(() => undefined);
}

/**
 * Returns a function that replaces values sealed with `before` by values sealed with `key`; values already sealed with
 * `key` are kept. It throws SealFault.
 */
export function sealingAnew(key: KeyObject, before: KeyObject): Rewrite {
  return (collection, members, text) => {
    const { id, ...rest } = parseRecord(text);
    const resealed = mapMembers({ id, ...rest }, members, (value, member) => {
      if (!isSealed(value)) return value;
      const place = { collection, id, member };
      if (opens(() => openValue(key, place, value))) return value;
      return sealValue(key, place, openValue(before, place, value));
    });
    return JSON.stringify(resealed);
  };
}

/** Returns the new key and the present one, and records in the store that it may be sealed with either. */
async function chooseKeys(
  directory: string,
  { dataDir, given, before: givenBefore, random }: KeySource & { before: KeyObject | undefined },
): Promise<Keys> {
  const file = keyFile(dataDir);
  const all = [given, givenBefore, await keyIn(file), await keyIn(newFile(file))];
  const withCheck = (check: string | undefined) => all.find((one) => one && checkOf(one) === check);
  const checks = withDatabase(directory, (database) => ({
    known: checkIn(database, CHECK),
    before: checkIn(database, CHECK_BEFORE),
  }));
  const before = withCheck(checks.before ?? checks.known);
  if (before === undefined) {
    throw new Error(
      `none of SECRETS_KEY, SECRETS_KEY_BEFORE and ${file} is the key that the store is sealed with`,
    );
  }
  if (checks.before !== undefined) {
    const key = withCheck(checks.known);
    if (key !== undefined) return { key, before };
    throw new Error('SECRETS_KEY is not the key that sealing anew was begun with');
  }
  if (given?.equals(before) === true) {
    throw new Error('SECRETS_KEY is the key already: set it to the new one, and SECRETS_KEY_BEFORE to this');
  }
  const key = given ?? (await makeKey(newFile(file), random));
  withDatabase(directory, (database) => {
    database.exec('PRAGMA synchronous = FULL; BEGIN IMMEDIATE');
    putCheck(database, CHECK_BEFORE, checkOf(before));
    putCheck(database, CHECK, checkOf(key));
    database.exec('COMMIT');
  });
  return { key, before };
}

/**
 * For a key that is lost: removes the secrets that the present key (if any) does not open, and uses that key from now
 * on. In the configuration the members are removed, in the database the whole records.
 * @returns how many records and members were removed.
 * @throws Error when a server has the store open.
 */
export async function resetSealed({ dataDir, given }: Omit<KeySource, 'random'>) {
  const file = keyFile(dataDir);
  const removed = { records: 0, members: 0 };
  await withStore(dataDir, async (directory) => {
    const key = given ?? (await keyIn(file).catch(() => undefined));
    const { isLost, withoutLost } = lostWith(key, removed);
    await rewriteConfiguration(directory, withoutLost);
    withDatabase(directory, (database) => {
      const rewrite: Rewrite = (collection, members, text) => {
        if (!isLost(collection, members, text)) return text;
        removed.records++;
        // The check values that say that the store has had signing keys are removed with the keys.
        if (collection === 'signingKeys')
          for (const alg of SIGNING_ALGS) removeCheck(database, signingCheck(alg));
        return undefined;
      };
      rewriteDatabase(database, rewrite, () => {
        for (const id of [CHECK, CHECK_BEFORE]) removeCheck(database, id);
        if (key !== undefined) putCheck(database, CHECK, checkOf(key));
      });
    });
    if (key === undefined) await rm(file, { force: true });
  });
  return removed;
}

/**
 * Returns functions that find, and remove, what a key does not open.
 * @param removed counts the members that `withoutLost` removes.
 */
export function lostWith(key: KeyObject | undefined, removed: { members: number }) {
  const isLost = (collection: string, members: readonly string[], text: string) => {
    const { any, all } = opensWith(key, collection, members, text);
    return any && !all;
  };
  const withoutLost: Rewrite = (collection, members, text) => {
    if (!isLost(collection, members, text)) return text;
    const { id, ...rest } = parseRecord(text);
    const kept = mapMembers({ id, ...rest }, members, (value, member) => {
      const place = { collection, id, member };
      if (!isSealed(value) || (key && opens(() => openValue(key, place, value)))) return value;
      removed.members++;
      return undefined;
    });
    return JSON.stringify(kept);
  };
  return { isLost, withoutLost };
}

/** Returns where a new key is stored until everything is sealed with it. */
export const newFile = (file: string) => `${file}.new`;

function opens(open: () => unknown): boolean {
  try {
    open();
    return true;
  } catch {
    return false;
  }
}

/** Works on the files of a complete store that no other process has open. */
async function withStore(dataDir: string, work: (directory: string) => Promise<void>): Promise<void> {
  const directory = join(dataDir, 'store');
  await expectStore(directory);
  const unlock = lockDirectory(dataDir);
  try {
    await checkDatabase(databaseFile(directory));
    await work(directory);
  } finally {
    unlock();
  }
}
