// Reads what is still readable in a damaged database.
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { keyValues } from '../keys.ts';
import type { AnyRecord } from '../record.ts';
import { checksum, RecordFault, type Row, recordOfRow, unopened } from './row.ts';
import { type SqlCollection, sqlCollections } from './schema.ts';

interface Salvaged {
  /** The JSON text of each record, by collection and id. */
  records: Map<string, Map<string, string>>;
  /** Whether every table could be read to its end. */
  complete: boolean;
  /** Messages about the damaged records. */
  damaged: string[];
}

/** Returns whether a table has checksums; format 1 had none. */
const sumColumn = (database: DatabaseSync, name: string) =>
  database.prepare(`SELECT 1 FROM pragma_table_info('${name}') WHERE name = 'sum'`).get() !== undefined;

/** Reads each table from both ends up to the damage. A record with a unique key that an earlier one has is left out. */
export function salvage(file: string): Salvaged {
  const records = new Map<string, Map<string, string>>();
  const damaged: string[] = [];
  let complete = true;
  if (!existsSync(file)) return { records, complete: false, damaged };
  const database = new DatabaseSync(file);
  try {
    for (const collection of sqlCollections()) {
      const found = new Map<string, string>();
      records.set(collection.name, found);
      const keep = recordCollector(collection, found, damaged);
      if (scan(database, collection.name, 'ASC', keep)) continue;
      complete = false;
      scan(database, collection.name, 'DESC', keep);
    }
  } finally {
    database.close();
  }
  return { records, complete, damaged: [...new Set(damaged)] };
}

/** Returns whether the table could be read to its end. */
function scan(database: DatabaseSync, name: string, order: string, keep: (row: Row) => void): boolean {
  try {
    const columns = sumColumn(database, name) ? 'id, data, sum' : 'id, data';
    const rows = database.prepare(`SELECT ${columns} FROM "${name}" ORDER BY rowid ${order}`).iterate();
    for (const row of rows) keep(row);
    return true;
  } catch {
    return false;
  }
}

function recordCollector(
  { name, spec }: SqlCollection,
  found: Map<string, string>,
  damaged: string[],
): (row: Row) => void {
  const uniqueKeys = new Set<string>();
  return (row) => {
    const json = String(row.data);
    let record: AnyRecord;
    try {
      record = recordOfRow(name, { sum: checksum(name, json), ...row }, unopened);
    } catch (fault) {
      damaged.push(fault instanceof RecordFault ? fault.message : `a record of ${name} is damaged`);
      return;
    }
    if (found.has(record.id)) return;
    const keys = keyValues(spec.unique, record).map(([key, value]) => `${key}\n${value}`);
    if (keys.some((key) => uniqueKeys.has(key))) return;
    for (const key of keys) uniqueKeys.add(key);
    found.set(record.id, json);
  };
}
