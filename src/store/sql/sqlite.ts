// SQLite inside Node. The main thread reads on its own connection; a worker thread commits, so that waiting for the
// disk never blocks the event loop. In WAL mode neither waits for the other.
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { keepLatest } from '../../runtime/latest.ts';
import type { AnyRecord } from '../record.ts';
import { hasKey } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { sqliteDialect } from './dialect.ts';
import { columnText, fromColumn, RecordFault, type Row, recordOfRow } from './row.ts';
import { readStatements, type SqlCollection } from './schema.ts';
import { markOpen, namingDatabase } from './sqlite-file.ts';
import { commitPragmas } from './sqlite-pragmas.ts';
import type { Committed } from './table.ts';

/** How many recently read records of a collection, and how many ids without a record, are cached. */
const mostLatest = 200;
/** The longest id, in characters, that is cached as absent: clients choose ids in requests. */
const longestAbsent = 256;

/** Opens a database for reading on this thread; the file is marked as open until it is closed. */
export function openReader(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  namingDatabase(file, () => {
    database.exec(commitPragmas);
    // From the first read on the log exists, and no other process can open the file exclusively.
    database.exec(`${markOpen(true)}; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA query_only = ON`);
  });
  return database;
}

/**
 * Closes the last connection, which moves the write-ahead log into the file. If the disk is too full even to mark the
 * file as closed, the connection is left to the end of the process, so that the log remains for the next start.
 */
export function closeReader(database: DatabaseSync): void {
  try {
    // The checkpoint comes first because it frees space.
    database.exec('PRAGMA query_only = OFF; PRAGMA wal_checkpoint(TRUNCATE)');
    database.exec(markOpen(false));
  } catch {
    return;
  }
  database.close();
}

/** Returns the committed records of a collection. Its methods throw an Error naming the file when it is damaged. */
export function sqliteCommitted(
  file: string,
  database: DatabaseSync,
  { name, spec }: SqlCollection,
  seal: RecordSeal,
): Committed {
  const statements = readStatements(name, sqliteDialect);
  const prepared = new Map<string, StatementSync>();
  const prepare = (key: keyof typeof statements) => {
    const known = prepared.get(key) ?? database.prepare(statements[key]);
    prepared.set(key, known);
    return known;
  };
  /**
   * Recently read records, kept up to date: a request reads some records several times. Records with sealed members are
   * not cached.
   */
  const latest = new Map<string, AnyRecord>();
  /** Recently requested ids without a record: a login looks several times for failed attempts that do not exist. */
  const absent = new Map<string, true>();
  const keep = (record: AnyRecord) => keepLatest(latest, mostLatest, record.id, record);
  const open = (row: Row) => openRow(file, name, row, seal);
  const all = (key: keyof typeof statements, ...parameters: (string | number)[]) =>
    prepare(key)
      .all(...parameters)
      .map(open);
  return {
    get(id) {
      const known = latest.get(id);
      if (known !== undefined || absent.has(id)) return known;
      const row = prepare('get').get(columnText(id));
      if (row === undefined) {
        if (id.length <= longestAbsent) keepLatest(absent, mostLatest, id, true);
        return undefined;
      }
      const record = open(row);
      if (spec.sealed === undefined) keep(record);
      return record;
    },
    changed(id, record) {
      absent.delete(id);
      const isKnown = latest.delete(id);
      if (isKnown && record !== undefined) keep(record);
    },
    holder(key, value) {
      const row = prepare('holder').get(key, columnText(value));
      return row === undefined ? undefined : fromColumn(String(row.id));
    },
    // The key is checked again: a damaged index must not lead to another record.
    find: (unique, key, value, now) =>
      all(unique ? 'findUnique' : 'findIndex', key, columnText(value), now).filter((record) =>
        hasKey(spec, record, key, value),
      ),
    page: (after, limit, now) => all('page', after === '' ? '' : columnText(after), now, limit),
    count: (now) => Number(prepare('count').get(now)?.n),
    isEmpty: () => Number(prepare('any').get()?.n) === 0,
    expired: (now, limit) => all('expired', now, limit),
  };
}

/** Returns the record of a row. @throws Error naming the file and the record when it is damaged or cannot be opened. */
export function openRow(file: string, name: string, row: Row, seal: RecordSeal): AnyRecord {
  try {
    return recordOfRow(name, row, seal);
  } catch (cause) {
    throw new RecordFault(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
