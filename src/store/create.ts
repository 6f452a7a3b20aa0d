// Making a store: beside the place where it will be, and moved there when it is whole. So a store that is there has
// all its files, and one of them that is missing is damage.
import { chmod, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StoreAbsent } from './contract.ts';
import { directoryMode, syncDirectory, syncFile } from './files.ts';
import { collectionSpecs } from './keys.ts';
import { openConfiguration, type Texts } from './lowdb/file.ts';
import { fillDatabase } from './sql/fill.ts';
import { createDatabase, namingDatabase } from './sql/sqlite-file.ts';

/** The database of a store. */
export const databaseFile = (directory: string) => join(directory, 'gatehouse.db');

/** The collections that are configuration. */
export function configurationSpecs() {
  return collectionSpecs().filter(([, spec]) => spec.kept === 'configuration');
}

/** Whether there is a store in a directory, or what is left of one. */
export async function holdsStore(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.length > 0;
}

/** @throws StoreAbsent where there is no store in a directory. */
export async function expectStore(directory: string): Promise<void> {
  if (!(await holdsStore(directory))) throw new StoreAbsent(directory);
}

/**
 * Makes a store that holds these records, by collection and id, whole or not at all.
 * @param directory where it will be; there is nothing there, or an empty directory
 */
export async function createStore(directory: string, records: ReadonlyMap<string, Texts>): Promise<void> {
  const making = `${directory}.new`;
  await prepareStore(making, records);
  await rmdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rename(making, directory);
  await syncDirectory(dirname(directory));
}

/** Makes a store in a directory of that name, in place of what is left there of an earlier try. */
export async function prepareStore(making: string, records: ReadonlyMap<string, Texts>): Promise<void> {
  await rm(making, { recursive: true, force: true });
  await mkdir(making, { recursive: true, mode: directoryMode });
  await chmod(making, directoryMode);
  for (const [name] of configurationSpecs()) {
    const low = await openConfiguration(making, name, records.get(name) ?? new Map());
    await low.write();
  }
  namingDatabase(databaseFile(making), () => {
    const database = createDatabase(databaseFile(making));
    try {
      fillDatabase(database, records);
    } finally {
      database.close();
    }
  });
  await syncFile(databaseFile(making));
  await syncDirectory(making);
}
