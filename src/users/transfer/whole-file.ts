// Imports a file of any length for the command line, and exports all users to one: some users at a time, so that none of
// it is in memory as a whole, and logins come between.
import { setImmediate } from 'node:timers/promises';
import { checkedJson } from '../../http/body.ts';
import { DATABASE } from '../../records/connections.ts';
import { type FailedUser, FileFault, type ImportFile, userReader } from './file.ts';
import { type ImportDependencies, type ImportOptions, importUsers } from './import.ts';
import { usersOf } from './split.ts';

/** Users of one write: few enough that a login which waits for the store does not notice. */
const AT_A_TIME = 25;

export interface ImportCounts {
  total: number;
  inserted: number;
  updated: number;
  failed: number;
}

/**
 * Reads a file through before any of its users is imported.
 * @throws FileFault for a file that is no list of users.
 */
export async function checkFile(chunks: AsyncIterable<string>): Promise<void> {
  for await (const text of usersOf(chunks)) jsonOf(text);
}

/**
 * Imports the users of a file while it is read.
 * @param isEnding whether the process is about to end.
 * @returns who was not imported, and at the end how many were.
 * @throws FileFault for a file that is no list of users; Error where the process ends before the file: what was
 *   imported stays.
 */
export async function* importFile(
  deps: ImportDependencies,
  chunks: AsyncIterable<string>,
  options: ImportOptions,
  isEnding: () => boolean = () => false,
): AsyncGenerator<{ failed: FailedUser } | { counts: ImportCounts }> {
  const counts: ImportCounts = { total: 0, inserted: 0, updated: 0, failed: 0 };
  const read = userReader(DATABASE);
  const write = async (users: ImportFile['users']) => {
    const outcome = await importUsers(deps, options, users, () => []);
    counts.total += users.length;
    counts.inserted += outcome.inserted;
    counts.updated += outcome.updated;
    counts.failed += outcome.failed.length;
    await setImmediate();
    if (isEnding())
      throw new Error(`the server is about to end: ${counts.total} users of the file were looked at`);
    return outcome.failed.map((failed) => ({ failed }));
  };
  let some: ImportFile['users'][number][] = [];
  for await (const text of usersOf(chunks)) {
    some.push(read(jsonOf(text)));
    if (some.length < AT_A_TIME) continue;
    yield* await write(some);
    some = [];
  }
  if (some.length > 0) yield* await write(some);
  yield { counts };
}

function jsonOf(text: string): unknown {
  try {
    return checkedJson(text);
  } catch {
    // The error would quote the file, which may hold hashes.
    throw new FileFault('The users file is neither a JSON array nor one JSON object a line.');
  }
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
