// The database's file: creates it, checks it, and brings it to the present declarations before anything uses it.
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { chmod, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileMode } from '../../runtime/files.ts';
import { addedIndexes, isObject, parseRecord } from '../record.ts';
import { sqliteDialect } from '../sql/dialect.ts';
import { keyAdder } from '../sql/fill.ts';
import {
  creation,
  fieldColumn,
  fieldIndex,
  fieldOf,
  type SqlCollection,
  sqlCollections,
} from '../sql/schema.ts';

// Detects damage in SQLite's write-ahead log, as opposed to an end cut off by a crash. SQLite itself takes both for the
// end of the log, and would silently lose acknowledged changes after the damage.
//
// A transaction is written only after the previous one is synced, so a crash leaves at most one transaction incomplete:
// an intact transaction behind a damaged one proves that the damaged one was once complete. The format is at
// https://www.sqlite.org/fileformat2.html#the_write_ahead_log

const headerBytes = 32;
const frameHeaderBytes = 24;
/** The lowest bit says whether checksums use big-endian words. */
const magic = 0x377f0682;

type Checksum = [number, number];
type Range = [from: number, to: number];

/**
 * Returns the number of the first damaged frame; undefined if there is none.
 * @throws Error when the file cannot be read.
 */
function damagedFrame(file: string): number | undefined {
  const log = readFileSync(file);
  if (log.length < headerBytes) return undefined;
  const kind = log.readUInt32BE(0);
  const view = new DataView(log.buffer, log.byteOffset, log.length);
  const sum = (start: Checksum, ...ranges: Range[]) => checksum(view, (kind & 1) === 0, start, ranges);
  let before: Checksum = [log.readUInt32BE(24), log.readUInt32BE(28)];
  // The header is synced before the first frame is written.
  const intact = (kind & ~1) >>> 0 === magic && isSum(sum([0, 0], [0, 24]), before);
  if (!intact) return log.length > headerBytes ? 0 : undefined;
  const size = frameHeaderBytes + log.readUInt32BE(8);
  let damaged: number | undefined;
  let ended = false;
  for (let at = headerBytes, frame = 1; at + size <= log.length; at += size, frame++) {
    // Frames of earlier rounds of the log have other salts.
    const current = log.compare(log, 16, 24, at + 8, at + 16) === 0;
    const own: Checksum = [log.readUInt32BE(at + 16), log.readUInt32BE(at + 20)];
    const whole = current && isSum(sum(before, [at, at + 8], [at + frameHeaderBytes, at + size]), own);
    if (whole && ended) return damaged;
    if (!whole) damaged ??= frame;
    if (damaged !== undefined && current && log.readUInt32BE(at + 4) !== 0) ended = true;
    before = own;
  }
  return undefined;
}

function isSum([a, b]: Checksum, [x, y]: Checksum): boolean {
  return a === x && b === y;
}

/** Continues a checksum over some ranges of bytes. */
function checksum(view: DataView, littleEndian: boolean, [x, y]: Checksum, ranges: Range[]): Checksum {
  let a = x;
  let b = y;
  for (const [from, to] of ranges) {
    for (let offset = from; offset < to; offset += 8) {
      a = (a + view.getUint32(offset, littleEndian) + b) >>> 0;
      b = (b + view.getUint32(offset + 4, littleEndian) + a) >>> 0;
    }
  }
  return [a, b];
}

/** "gate", the application id in the file's header, which distinguishes a store from other databases. */
const applicationId = 0x67617465;
const version = 3;
const sqliteBusy = 5;
/** SQLITE_ERROR (a table is missing), SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_IOERR_SHORT_READ. */
const damageCodes = [1, 11, 26];
const shortRead = 522;

/**
 * Creates a database with its tables, to be filled and closed; it becomes durable only with {@link syncFile}.
 * @throws Error when the file exists.
 */
export function createDatabase(file: string): DatabaseSync {
  // SQLite gives the files that it creates beside this one the same mode.
  closeSync(openSync(file, 'wx', fileMode));
  const database = new DatabaseSync(file);
  database.exec('PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; BEGIN');
  database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
  createTables(database);
  database.exec('COMMIT');
  return database;
}

/** Works on a database and adds the file to errors of SQLite; damage becomes a DatabaseFault. */
export function namingDatabase<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const message = `${file}: ${reasonOf(cause)}`;
    throw isDamage(cause) ? new DatabaseFault(message, { cause }) : new Error(message, { cause });
  }
}

/** The file is damaged or missing. `gatehouse repair` keeps what is still readable. */
export class DatabaseFault extends Error {}

/**
 * Checks a database and creates the tables and keys that the release before did not have.
 * @param checkBytes a larger file is not read completely
 * @returns whether it was read completely
 * @throws Error naming the file when it is missing, in use or of a newer release, and DatabaseFault when it is damaged.
 */
export async function checkDatabase(file: string, checkBytes = Infinity): Promise<{ checked: boolean }> {
  await stat(file).catch((cause) => {
    throw new DatabaseFault(`${file} is missing`, { cause });
  });
  const present: string[] = [];
  for (const one of [file, `${file}-wal`, `${file}-shm`]) {
    await chmod(one, fileMode).then(
      () => present.push(one),
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      },
    );
  }
  const logged = present.includes(`${file}-wal`);
  return namingDatabase(file, () => {
    // Before SQLite opens the database, because closing it again would delete the log.
    const frame = logged ? damagedFrame(`${file}-wal`) : undefined;
    if (frame !== undefined) {
      throw new DatabaseFault(`${basename(file)}-wal is damaged at frame ${frame}, with changes behind it`);
    }
    const database = new DatabaseSync(file);
    try {
      return examine(database, { file, logged, checkBytes });
    } finally {
      database.close();
    }
  });
}

function examine(
  database: DatabaseSync,
  { file, logged, checkBytes }: { file: string; logged: boolean; checkBytes: number },
): { checked: boolean } {
  // No other process may have it open, even if the file of the store's lock was deleted.
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL');
  database.exec('BEGIN IMMEDIATE; COMMIT');
  identify(database);
  const mode = database.prepare('PRAGMA journal_mode').get()?.journal_mode;
  if (mode === 'wal' && isMarkedOpen(database) && !logged) {
    throw new DatabaseFault(`${basename(file)}-wal is missing, which held the latest changes`);
  }
  // A copy made by SQLite (VACUUM INTO) is not in this mode and needs no log.
  database.exec('PRAGMA journal_mode = WAL');
  const checked = checkLength(database, file) <= checkBytes;
  const fault = checked ? damageIn(database.prepare(integrityCheck).all()) : undefined;
  if (fault !== undefined) throw new DatabaseFault(fault);
  database.exec('BEGIN IMMEDIATE');
  addFields(database);
  createTables(database);
  database.exec(`${markOpen(false)}; COMMIT`);
  // Moves the write-ahead log of a killed server into the file.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  return { checked };
}

/** Reads the whole file and reports damage to its structure. */
export const integrityCheck = 'PRAGMA quick_check(1)';

/** Returns the first fault that {@link integrityCheck} reported, if any. */
export function damageIn(rows: Record<string, unknown>[]): string | undefined {
  const [first] = rows.map((row) => String(Object.values(row)[0]));
  return first === 'ok' ? undefined : first?.replace(/^\*\*\* .* \*\*\*\n/, '');
}

/** Returns the size of the file in bytes. @throws DatabaseFault when it is cut off. */
function checkLength(database: DatabaseSync, file: string): number {
  const pragma = (name: string) => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const expected = pragma('page_count') * pragma('page_size');
  const { size } = statSync(file);
  if (size < expected) throw new DatabaseFault(`the file is cut off: ${size} bytes of ${expected}`);
  return size;
}

/**
 * Returns the statement that marks the database as open or closed. While it is marked open, also after a crash, there
 * must be a write-ahead log; if that is missing, the latest changes are lost.
 */
export function markOpen(open: boolean): string {
  return `INSERT OR REPLACE INTO meta (name, value) VALUES ('open', '${open ? 'yes' : 'no'}')`;
}

function isMarkedOpen(database: DatabaseSync): boolean {
  return database.prepare("SELECT value FROM meta WHERE name = 'open'").get()?.value === 'yes';
}

function identify(database: DatabaseSync): void {
  const pragma = (name: string) => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  if (pragma('application_id') !== applicationId) throw new Error('this is not a store');
  const found = pragma('user_version');
  if (found > version) throw new Error(`store format ${found} is not known here: a newer release wrote it`);
}

/** A field may become indexed in a later release. */
function addFields(database: DatabaseSync): void {
  for (const { name, spec } of sqlCollections()) {
    const columns = database.prepare(`SELECT name FROM pragma_table_info('${name}')`).all();
    if (columns.length === 0) continue;
    for (const path of spec.indexed ?? []) {
      if (columns.some((column) => column.name === `field_${path}`)) continue;
      database.exec(`DROP INDEX IF EXISTS "${fieldIndex(name, path)}"`);
      database.exec(`ALTER TABLE "${name}" ADD COLUMN ${fieldColumn(path)} TEXT`);
      database.exec(`UPDATE "${name}" SET ${fieldColumn(path)} = ${fieldOf(sqliteDialect, 'data', path)}`);
    }
  }
}

function createTables(database: DatabaseSync): void {
  database.exec('CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID');
  for (const sql of creation(sqliteDialect)) database.exec(sql);
  for (const collection of sqlCollections()) indexAgain(database, collection);
}

/**
 * If the declared keys differ from those of the table, makes them from the records: all of them, or only added indexes.
 */
function indexAgain(database: DatabaseSync, collection: SqlCollection): void {
  const { name, spec } = collection;
  const declared = JSON.stringify([Object.keys(spec.unique), Object.keys(spec.indexes)]);
  const known = database.prepare('SELECT value FROM meta WHERE name = ?').get(`keys of ${name}`);
  if (known?.value === declared) return;
  const [unique = [], indexes = []] = JSON.parse(String(known?.value ?? '[]')) as string[][];
  const added = addedIndexes(spec, { unique, indexes });
  for (const kind of added === undefined ? ['unique', 'index'] : []) {
    const table = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(`${name}_${kind}`);
    if (table !== undefined) database.exec(`DELETE FROM "${name}_${kind}"`);
  }
  const addKeys = keyAdder(database, { ...collection, spec: added ?? spec });
  for (const { data } of database.prepare(`SELECT data FROM "${name}"`).iterate()) {
    addKeys(parseRecord(String(data)));
  }
  database
    .prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)')
    .run(`keys of ${name}`, declared);
}

function isDamage(error: unknown): boolean {
  if (error instanceof DatabaseFault) return true;
  const code = isObject(error) ? Number(error.errcode) : 0;
  return code === shortRead || damageCodes.includes(code & 0xff);
}

function reasonOf(error: unknown): string {
  if (isObject(error) && error.errcode === sqliteBusy) {
    return 'it is in use: another server, or a command, has this store open';
  }
  return error instanceof Error ? error.message : String(error);
}
