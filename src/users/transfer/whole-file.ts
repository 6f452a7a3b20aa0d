// Imports a whole file at once, for the command line.
import { DATABASE } from '../../records/connections.ts';
import { type FailedUser, FileFault, readFile } from './file.ts';
import { type ImportDependencies, type ImportOptions, importUsers } from './import.ts';

/** Users of one write. */
const AT_A_TIME = 250;

export interface ImportCounts {
  total: number;
  inserted: number;
  updated: number;
  failed: number;
}

/**
 * Imports all users of a file.
 * @param onFailed told of each user who was not imported.
 * @throws FileFault for a file that is no list of users, or an unknown connection.
 */
export async function importWholeFile(
  deps: ImportDependencies,
  text: string,
  options: ImportOptions,
  onFailed: (failed: FailedUser) => void,
): Promise<ImportCounts> {
  const { users } = readFile(text, DATABASE);
  const counts: ImportCounts = { total: users.length, inserted: 0, updated: 0, failed: 0 };
  for (let at = 0; at < users.length; at += AT_A_TIME) {
    const outcome = await importUsers(deps, options, users.slice(at, at + AT_A_TIME), () => []);
    counts.inserted += outcome.inserted;
    counts.updated += outcome.updated;
    counts.failed += outcome.failed.length;
    for (const one of outcome.failed) onFailed(one);
  }
  return counts;
}

/**
 * The database connection of a name; without one the only one that there is.
 * @throws FileFault where there is none, or several.
 */
export async function databaseOf(
  { store }: Pick<ImportDependencies, 'store'>,
  name: string | undefined,
): Promise<string> {
  const { records } = await store.collection('connections').list({ limit: 1000 });
  const databases = records.filter(({ strategy }) => strategy === DATABASE).map((one) => one.name);
  const chosen = name === undefined ? (databases.length === 1 ? databases[0] : undefined) : name;
  if (chosen !== undefined && databases.includes(chosen)) return chosen;
  throw new FileFault(
    `${name === undefined ? 'name the connection with --connection' : `there is no database connection ${name}`}: ${databases.join(', ')}`,
  );
}
