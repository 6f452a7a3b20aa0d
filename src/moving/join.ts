// Joins the users of an export with what other files have about them, by their ids. What is looked up is kept in a temporary
// database of SQLite, which is a file without a name that nobody else can open, and is gone with the process: two million
// hashes do not fit into memory.
import { stat } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { DATABASE } from '../records/connections/connections.ts';
import { idOfSecret, userOfSecret } from '../users/transfer/moved-user.ts';
import { type ExportLine, linesOfExport } from './export-lines.ts';

export interface MoveFiles {
  users: readonly string[];
  /** Password hashes from the hosted service's support, or import files. */
  hashes: readonly string[];
  /** Roles, permissions and memberships. */
  memberships: readonly string[];
}

/** A line that no user can be made of, and why. */
export interface UnreadLine {
  of: 'user' | 'access';
  text: string;
  message: string;
}

export interface Joined {
  /** Returns which part of the users was read, from 0 to 1. */
  progress(): number;
  /** Lines for `receiveMoved`, in pieces. */
  lines(onUnread: (line: UnreadLine) => void): AsyncGenerator<string>;
  close(): void;
}

/** The kinds of lines that are looked up. */
const [SECRET, ACCESS] = [0, 1];
/** Rows that are written in one transaction, and characters that are sent at once. */
const ROWS = 50_000;
const PIECE_LENGTH = 1 << 16;

/**
 * Reads what is to be looked up.
 * @param more further lines about roles, permissions and memberships.
 * @throws Error for a file that cannot be read
 */
export async function joinFiles(
  files: MoveFiles,
  more: AsyncIterable<object> | Iterable<object> = [],
): Promise<Joined> {
  // The empty name is a private temporary file that SQLite removes when it opens it.
  const database = new DatabaseSync('');
  try {
    database.exec(
      'PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32768; CREATE TABLE about (kind INTEGER, user TEXT, line TEXT, used INTEGER DEFAULT 0)',
    );
    await fill(database, SECRET, linesOf(files.hashes), ({ value }) => value && idOfSecret(value));
    const userOf = ({ value }: Pick<ExportLine, 'value'>) =>
      typeof value?.user_id === 'string' ? value.user_id : undefined;
    await fill(database, ACCESS, linesOf(files.memberships), userOf);
    await fill(database, ACCESS, linesFrom(more), userOf);
    // Sorted once, which is much faster than keeping an index of random ids while it is filled.
    database.exec('CREATE INDEX about_user ON about (user, kind)');
    // It is never committed: what was used is noted for this run only, and a transaction for each note would cost more than the note.
    database.exec('BEGIN');
    const read = { done: 0, all: await sizeOf(files.users) };
    if (files.users.length === 0) read.all = distinct(database);
    return {
      progress: () => (read.all === 0 ? 1 : Math.min(1, read.done / read.all)),
      lines: (onUnread) =>
        inPieces(
          joined(database, files, onUnread, (more) => {
            read.done += more;
          }),
        ),
      close: () => database.close(),
    };
  } catch (thrown) {
    database.close();
    throw thrown;
  }
}

async function sizeOf(files: readonly string[]): Promise<number> {
  const all = await Promise.all(files.map((file) => stat(file)));
  return all.reduce((sum, { size }) => sum + size, 0);
}

const distinct = (database: DatabaseSync) =>
  Number(database.prepare("SELECT count(DISTINCT user) AS n FROM about WHERE user <> ''").get()?.n);

async function* inPieces(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let piece = '';
  for await (const line of lines) {
    piece += `${line}\n`;
    if (piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

async function* linesOf(files: readonly string[]): AsyncGenerator<ExportLine> {
  for (const file of files) yield* linesOfExport(file);
}

async function* linesFrom(
  objects: AsyncIterable<object> | Iterable<object>,
): AsyncGenerator<Pick<ExportLine, 'text' | 'value'>> {
  for await (const one of objects) yield { text: JSON.stringify(one), value: { ...one } };
}

async function fill<L extends Pick<ExportLine, 'text' | 'value'>>(
  database: DatabaseSync,
  kind: number,
  lines: AsyncIterable<L>,
  userOf: (line: L) => string | undefined,
): Promise<void> {
  const insert = database.prepare('INSERT INTO about (kind, user, line) VALUES (?, ?, ?)');
  let rows = 0;
  database.exec('BEGIN');
  for await (const line of lines) {
    // Without a user it is told with all others that nothing could be made of.
    insert.run(kind, userOf(line) ?? '', line.text);
    rows += 1;
    if (rows % ROWS === 0) database.exec('COMMIT; BEGIN');
  }
  database.exec('COMMIT');
}

/** @param onRead is called with how much of what {@link Joined.progress} tells was read. */
async function* joined(
  database: DatabaseSync,
  { users }: MoveFiles,
  onUnread: (line: UnreadLine) => void,
  onRead: (more: number) => void,
): AsyncGenerator<string> {
  const about = database.prepare('SELECT rowid, line FROM about WHERE user = ? AND kind = ?');
  const use = database.prepare('UPDATE about SET used = 1 WHERE rowid = ?');
  const linesAbout = (kind: number, ids: readonly string[]): string =>
    ids
      .flatMap((id) => about.all(id, kind))
      .map(({ rowid, line }) => {
        use.run(Number(rowid));
        return String(line);
      })
      .join();
  for (const file of users) {
    for await (const { text, value, number } of linesOfExport(file, onRead)) {
      const id = value?.user_id;
      if (value === undefined || typeof id !== 'string') {
        const what = value === undefined ? 'is no JSON object' : 'has no user_id';
        onUnread({ of: 'user', text, message: `line ${number} of ${file} ${what}` });
        continue;
      }
      const secrets = linesAbout(SECRET, [...new Set([id, ...databaseIdsOf(value.identities)])]);
      yield `{"user":${text},"secrets":[${secrets}],"access":[${linesAbout(ACCESS, [id])}]}`;
    }
  }
  const counted = users.length === 0 ? onRead : () => undefined;
  // A user whom the export does not have, but the file of hashes, which has addresses.
  for (const user of left(database, SECRET)) {
    const secrets = linesAbout(SECRET, [user]);
    const [first] = JSON.parse(`[${secrets}]`) as [unknown];
    const made = JSON.stringify(userOfSecret(first));
    counted(1);
    yield `{"user":${made},"secrets":[${secrets}],"access":[${linesAbout(ACCESS, [user])}]}`;
  }
  // Roles of users who are here already.
  for (const user of left(database, ACCESS)) {
    counted(1);
    yield `{"id":${JSON.stringify(user)},"access":[${linesAbout(ACCESS, [user])}]}`;
  }
  for (const { kind, line } of database.prepare("SELECT kind, line FROM about WHERE user = ''").iterate())
    onUnread({ of: kind === SECRET ? 'user' : 'access', text: String(line), message: 'it names no user' });
}

/** Yields the users about whom there are lines that were not used, some at a time: they are used meanwhile. */
function* left(database: DatabaseSync, kind: number): Generator<string> {
  const next = database.prepare(
    'SELECT DISTINCT user FROM about WHERE kind = ? AND used = 0 AND user > ? ORDER BY user LIMIT 1000',
  );
  for (let after = ''; ; ) {
    const users = next.all(kind, after).map(({ user }) => String(user));
    yield* users;
    const last = users.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

/** Returns the ids under which the passwords of a user's identities are, those of linked ones among them. */
function databaseIdsOf(identities: unknown): string[] {
  if (!Array.isArray(identities)) return [];
  return identities.flatMap((one: unknown) => {
    const { provider, user_id } = Object(one) as { provider?: unknown; user_id?: unknown };
    return provider === DATABASE && typeof user_id === 'string' ? [`${DATABASE}|${user_id}`] : [];
  });
}
