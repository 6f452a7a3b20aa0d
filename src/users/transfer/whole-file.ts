// Imports a file of any length for the command line: some users at a time, so that the file is not in memory as a whole and
// logins are served in between.
import { setImmediate, setTimeout } from 'node:timers/promises';
import { checkedJson } from '../../http/server/body.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import { customDatabase } from '../../records/database-options.ts';
import { type ImportDependencies, type ImportOptions, importUsers } from './import.ts';
import { type FailedUser, FileFault, type ImportFile, userReader, withoutFaults } from './transfer-file.ts';

/** Users per batch, few enough not to delay a login that waits for the store. */
const BATCH_SIZE = 25;

export interface ImportCounts {
  total: number;
  inserted: number;
  updated: number;
  failed: number;
}

/** @throws FileFault if it is not a list of users. */
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

// Splits a file of users into the text of each user while it is read, so that the file need not fit into memory.

/** The most characters of one user's text. */
const MAX_USER_LENGTH = 4 << 20;

/** The position of the next character in the file's structure. */
type Place = 'start' | 'value' | 'after' | 'end';

const SPACE = /\s/;
const QUOTE = 34;
const BACKSLASH = 92;
const [OPEN, CLOSE] = [123, 125];
const [OPEN_ARRAY, CLOSE_ARRAY] = [91, 93];

/**
 * Yields the users of a file: the objects of a JSON array, or a sequence of objects, such as one per line.
 * @param chunks the file's text, in pieces of any length.
 * @returns the text of each object. Its brackets match; it is not parsed as JSON here.
 * @throws FileFault if the file is neither, or has no users.
 */
export async function* usersOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let place: Place = 'start';
  let inArray = false;
  let count = 0;
  let rest = '';
  for await (const chunk of chunks) {
    rest += chunk;
    let at = 0;
    for (;;) {
      while (at < rest.length && isSpace(rest, at)) at += 1;
      const sign = rest[at];
      if (sign === undefined) break;
      if (place === 'start' && sign === '[') {
        inArray = true;
        place = 'value';
      } else if (place === 'after' && inArray && sign === ',') place = 'value';
      else if (inArray && sign === ']' && (place === 'after' || count === 0) && place !== 'end')
        place = 'end';
      else if (sign === '{' && place !== 'end' && (place !== 'after' || !inArray)) {
        const end = endOfObject(rest, at);
        if (end === undefined) break;
        yield rest.slice(at, end);
        count += 1;
        place = 'after';
        at = end;
        continue;
      } else throw noUsers();
      at += 1;
    }
    rest = rest.slice(at);
    if (rest.length > MAX_USER_LENGTH) throw new FileFault('A user of the file is too large.');
  }
  if (rest !== '' || (inArray && place !== 'end')) throw noUsers();
  if (count === 0) throw new FileFault('The file holds no users.');
}

function isSpace(text: string, at: number): boolean {
  const sign = text[at] ?? '';
  return sign === '\uFEFF' || SPACE.test(sign);
}

/** Returns the fault of a file that is not a list of users; the message is that of a file read as a whole. */
function noUsers(): FileFault {
  return new FileFault('The users file is neither a JSON array nor one JSON object a line.');
}

/** Returns the index after the object that begins at `start`; undefined if the text does not contain its end yet. */
function endOfObject(text: string, start: number): number | undefined {
  let depth = 0;
  let isText = false;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) isText = false;
    } else if (code === QUOTE) isText = true;
    else if (code === OPEN || code === OPEN_ARRAY) depth += 1;
    else if (code === CLOSE || code === CLOSE_ARRAY) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}
