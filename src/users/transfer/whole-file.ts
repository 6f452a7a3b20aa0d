// Imports a file of any length for the command line, and exports all users to one: some users at a time, so that none of
// it is in memory as a whole, and logins come between.
import { setImmediate, setTimeout } from 'node:timers/promises';
import { checkedJson } from '../../http/body.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE } from '../../records/connections.ts';
import { customDatabase } from '../../records/database-options.ts';
import { type FailedUser, FileFault, type ImportFile, userReader, withoutFaults } from './file.ts';
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

/** What lies between two writes. */
export interface Between {
  /** Whether the process is about to end. */
  isEnding(): boolean;
  /** Lets others have their turn. @param took how long the write and its reads took, milliseconds. */
  rest(took: number): Promise<void>;
}

/** Milliseconds for a write and the rest after it: with 4,000 of them for 100,000 users, three minutes. */
const PACE = 45;

/** Where nobody waits: no rest. */
export const alone: Between = { isEnding: () => false, rest: () => setImmediate() };

/** Beside logins: as long as the write took, so that they have half of the thread, as far as the pace allows. */
export async function restBesideLogins(took: number): Promise<void> {
  const rest = Math.min(took, PACE - took);
  await (rest > 1 ? setTimeout(rest) : setImmediate());
}

/**
 * Imports the users of a file while it is read.
 * @returns who was not imported, and at the end how many were.
 * @throws FileFault for a file that is no list of users; Error where the process ends before the file: what was
 *   imported stays.
 */
export async function* importFile(
  deps: ImportDependencies,
  chunks: AsyncIterable<string>,
  options: ImportOptions,
  { isEnding, rest }: Between = alone,
): AsyncGenerator<{ failed: FailedUser } | { counts: ImportCounts }> {
  const counts: ImportCounts = { total: 0, inserted: 0, updated: 0, failed: 0 };
  const read = userReader(DATABASE);
  const write = async (users: ImportFile['users']) => {
    const began = performance.now();
    const outcome = await importUsers(deps, options, users, () => []);
    counts.total += users.length;
    counts.inserted += outcome.inserted;
    counts.updated += outcome.updated;
    counts.failed += outcome.failed.length;
    await rest(performance.now() - began);
    if (isEnding())
      throw new Error(`the server is about to end: ${counts.total} users of the file were looked at`);
    return outcome.failed.map((failed) => ({ failed: withoutFaults(failed) }));
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
): Promise<Connection> {
  const { records } = await store.collection('connections').list({ limit: 1000 });
  const databases = records.filter((one) => one.strategy === DATABASE && customDatabase(one) !== 'elsewhere');
  const isOnly = databases.length === 1;
  const chosen = databases.find((one) => (name === undefined ? isOnly : one.name === name));
  if (chosen !== undefined) return chosen;
  throw new FileFault(
    `${name === undefined ? 'name the connection with --connection' : `there is no database connection ${name}`}: ${databases.map((one) => one.name).join(', ')}`,
  );
}
