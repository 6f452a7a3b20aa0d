// Files of the configuration that an older release did not have. The database records which files a store has had, so
// that a lost file is distinguished from one that never existed.
import { access } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { configurationSpecs } from '../create.ts';
import { syncDirectory } from '../files.ts';
import { configurationFile, openConfiguration } from './file.ts';

/**
 * Reads every file of the configuration and changes nothing.
 * @returns the collections without a file that were added after the first release of this format
 * @throws Error as {@link openConfiguration} does.
 */
export async function checkConfiguration(directory: string): Promise<string[]> {
  const absent: string[] = [];
  for (const [name, { added }] of configurationSpecs()) {
    if (added === true && !(await isThere(configurationFile(directory, name)))) absent.push(name);
    else await openConfiguration(directory, name);
  }
  return absent;
}

/**
 * Creates empty files for collections that the store never had, and records which files exist.
 * @param database the file of a checked database
 * @throws Error naming a file that the store had and that is missing.
 */
export async function addConfiguration(
  directory: string,
  database: string,
  absent: readonly string[],
): Promise<void> {
  const connection = new DatabaseSync(database);
  try {
    const row = connection.prepare("SELECT value FROM meta WHERE name = 'configuration'").get();
    const had: string[] = row === undefined ? [] : JSON.parse(String(row.value));
    for (const name of absent) {
      const isNew = !had.includes(name);
      const low = await openConfiguration(directory, name, isNew ? new Map() : undefined);
      await low.write();
    }
    if (absent.length > 0) await syncDirectory(directory);
    const all = JSON.stringify(configurationSpecs().map(([name]) => name));
    if (row?.value === all) return;
    connection.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('configuration', ?)").run(all);
  } finally {
    connection.close();
  }
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
