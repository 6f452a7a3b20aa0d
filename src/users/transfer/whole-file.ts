// Imports a file of any length for the command line: some users at a time, so that the file is not in memory as a whole and
// logins are served in between.
import { setImmediate, setTimeout } from 'node:timers/promises';
import { checkedJson } from '../../http/body.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE } from '../../records/connections.ts';
import { customDatabase } from '../../records/database-options.ts';
import { type FailedUser, FileFault, type ImportFile, userReader, withoutFaults } from './file.ts';
import { type ImportDependencies, type ImportOptions, importUsers } from './import.ts';
import { usersOf } from './split.ts';

/** Users per batch, few enough not to delay a login that waits for the store. */
const BATCH_SIZE = 25;

export interface ImportCounts {
  total: number;
  inserted: number;
  updated: number;
  failed: number;
}

/**
 * Checks a whole file before any of its users is imported.
 * @throws FileFault if it is not a list of users.
 */
export async function checkFile(chunks: AsyncIterable<string>): Promise<void> {
  for await (const text of usersOf(chunks)) jsonOf(text);
}

/** What happens between two batches. */
export interface BatchPauses {
  /** Returns whether the process is about to end. */
  isEnding(): boolean;
  /** Waits, so that requests are served. @param took the milliseconds that the batch and its reads took. */
  rest(took: number): Promise<void>;
}

/** The most milliseconds of a batch with the pause after it. The 4,000 batches of 100,000 users take three minutes then. */
const MAX_BATCH_MS = 45;

/** For a process that serves no requests: no pause. */
export const withoutPauses: BatchPauses = { isEnding: () => false, rest: () => setImmediate() };

/** Waits as long as the batch took, so that logins get half of the thread, but no longer than PACE allows. */
export async function restBesideLogins(took: number): Promise<void> {
  const rest = Math.min(took, MAX_BATCH_MS - took);
  await (rest > 1 ? setTimeout(rest) : setImmediate());
}

/**
 * Imports the users of a file while it is read.
 * @returns each user who was not imported, and at the end the counts.
 * @throws FileFault if the file is not a list of users; Error if the process is about to end. What was imported stays.
 */
export async function* importFile(
  deps: ImportDependencies,
  chunks: AsyncIterable<string>,
  options: ImportOptions,
  { isEnding, rest }: BatchPauses = withoutPauses,
): AsyncGenerator<{ failed: FailedUser } | { counts: ImportCounts }> {
  const counts: ImportCounts = { total: 0, inserted: 0, updated: 0, failed: 0 };
  const read = userReader(DATABASE);
  const write = async (users: ImportFile['users']) => {
    const startedAt = performance.now();
    const outcome = await importUsers(deps, options, users, () => []);
    counts.total += users.length;
    counts.inserted += outcome.inserted;
    counts.updated += outcome.updated;
    counts.failed += outcome.failed.length;
    await rest(performance.now() - startedAt);
    if (isEnding())
      throw new Error(`the server is about to end: ${counts.total} users of the file were looked at`);
    return outcome.failed.map((failed) => ({ failed: withoutFaults(failed) }));
  };
  let batch: ImportFile['users'][number][] = [];
  for await (const text of usersOf(chunks)) {
    batch.push(read(jsonOf(text)));
    if (batch.length < BATCH_SIZE) continue;
    yield* await write(batch);
    batch = [];
  }
  if (batch.length > 0) yield* await write(batch);
  yield { counts };
}

function jsonOf(text: string): unknown {
  try {
    return checkedJson(text);
  } catch {
    // The parser's error would quote the file, which may contain hashes.
    throw new FileFault('The users file is neither a JSON array nor one JSON object a line.');
  }
}

/**
 * Returns the database connection with a name, or without a name the only one.
 * @throws FileFault if there is none, or without a name several.
 */
export async function databaseOf(
  { store }: Pick<ImportDependencies, 'store'>,
  name: string | undefined,
): Promise<Connection> {
  const { records } = await store.collection('connections').list({ limit: 1000 });
  const databases = records.filter((one) => one.strategy === DATABASE && customDatabase(one) !== 'elsewhere');
  const isOnly = databases.length === 1;
  const connection = databases.find((one) => (name === undefined ? isOnly : one.name === name));
  if (connection !== undefined) return connection;
  throw new FileFault(
    `${name === undefined ? 'name the connection with --connection' : `there is no database connection ${name}`}: ${databases.map((one) => one.name).join(', ')}`,
  );
}
