// Creates a store beside its final place and moves it there when it is complete. So a store that exists has all its
// files, and a missing file means damage.
// docs/understand/decisions/store.md#a-store-is-created-beside-its-final-place-and-moved-there-when-it-is-complete
import { chmod, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { directoryMode, syncDirectory, syncFile } from '../runtime/files.ts';
import { StoreAbsent } from './contract.ts';
import { openConfiguration } from './lowdb/lowdb-file.ts';
import { collectionSpecs } from './record.ts';
import { createDatabase, namingDatabase } from './sqlite/sqlite-file.ts';

export const databaseFile = (directory: string) => join(directory, 'gatehouse.db');

export function configurationSpecs() {
  return collectionSpecs().filter(([, spec]) => spec.kept === 'configuration');
}

/** Returns whether a directory contains a store, or the remains of one. */
export async function holdsStore(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.length > 0;
}

/** Does nothing if a directory contains a store. @throws StoreAbsent otherwise. */
export async function expectStore(directory: string): Promise<void> {
  if (!(await holdsStore(directory))) throw new StoreAbsent(directory);
}

/** Creates an empty store, completely or not at all. @param directory must not exist yet, or be empty */
export async function createStore(directory: string): Promise<void> {
  const making = `${directory}.new`;
  // What an interrupted attempt has left.
  await rm(making, { recursive: true, force: true });
  await mkdir(making, { recursive: true, mode: directoryMode });
  await chmod(making, directoryMode);
  for (const [name] of configurationSpecs()) {
    const low = await openConfiguration(making, name, new Map());
    await low.write();
  }
  namingDatabase(databaseFile(making), () => createDatabase(databaseFile(making)).close());
  await syncFile(databaseFile(making));
  await syncDirectory(making);
  await rmdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rename(making, directory);
  await syncDirectory(dirname(directory));
}
