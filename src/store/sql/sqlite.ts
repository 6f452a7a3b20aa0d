// SQLite inside Node. This thread reads, by a connection of its own; a worker thread commits, so that waiting for
// the disk never holds up the event loop. In WAL mode neither waits for the other.
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { keepLatest } from '../../runtime/latest.ts';
import { hasKey } from '../keys.ts';
import type { AnyRecord } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { sqliteDialect } from './dialect.ts';
import { RecordFault, type Row, recordOfRow } from './row.ts';
import { readStatements, type SqlCollection } from './schema.ts';
import { markOpen, namingDatabase } from './sqlite-file.ts';
import { commitPragmas } from './sqlite-pragmas.ts';
import type { Committed } from './table.ts';
import { columnText, fromColumn } from './text.ts';

/** Records of one collection that are kept as they were read, and ids that are known to have none. */
const mostLatest = 200;
/** Characters of such an id: a stranger's may be long. */
const longestAbsent = 256;

/** Opens a database to read from it on this thread; until it is closed the file says that it is open. */
export function openReader(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  namingDatabase(file, () => {
    database.exec(commitPragmas);
    // From the first read on there is a log, and no other process can have the file for itself.
    database.exec(`${markOpen(true)}; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA query_only = ON`);
  });
  return database;
}

/**
 * Closes it, as the last connection there is: the write-ahead log becomes part of the file. Where there is no room
 * even to say so, it is left to the end of the process, so that the log stays for the next start.
 */
export function closeReader(database: DatabaseSync): void {
  try {
    // First, because that makes room.
    database.exec('PRAGMA query_only = OFF; PRAGMA wal_checkpoint(TRUNCATE)');
    database.exec(markOpen(false));
  } catch {
    return;
  }
  database.close();
}

/** The committed records of a collection. @throws Error naming the file where it is damaged. */
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
   * Read and checked a moment ago, and as it was changed since: a request reads some of its records several times. Without
   * what is sealed on disk.
   */
  const latest = new Map<string, AnyRecord>();
  /** Ids that no record had a moment ago: a login asks several times for failed attempts that there are none of. */
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
    // A damaged index must not lead to another's record.
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

/** The record of a row. @throws Error naming the file and the record when it is damaged or cannot be opened. */
export function openRow(file: string, name: string, row: Row, seal: RecordSeal): AnyRecord {
  try {
    return recordOfRow(name, row, seal);
  } catch (cause) {
    throw new RecordFault(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
