// What can still be read of a damaged database.
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { keyValues } from '../keys.ts';
import { type AnyRecord, parseRecord } from '../record.ts';
import { type SqlCollection, sqlCollections } from './schema.ts';

export interface Salvaged {
  /** The JSON text of each record, by collection and id. */
  records: Map<string, Map<string, string>>;
  /** Whether every table could be read to its end. */
  complete: boolean;
}

/** Reads each table from both ends up to what is damaged. A record that takes another's unique key is left out. */
export function salvage(file: string): Salvaged {
  const records = new Map<string, Map<string, string>>();
  let complete = true;
  if (!existsSync(file)) return { records, complete: false };
  const database = new DatabaseSync(file);
  try {
    for (const collection of sqlCollections()) {
      const found = new Map<string, string>();
      records.set(collection.name, found);
      const keep = keeper(collection, found);
      if (scan(database, collection.name, 'ASC', keep)) continue;
      complete = false;
      scan(database, collection.name, 'DESC', keep);
    }
  } finally {
    database.close();
  }
  return { records, complete };
}

/** @returns whether it came to the end. */
function scan(database: DatabaseSync, name: string, order: string, keep: (json: string) => void): boolean {
  try {
    const rows = database.prepare(`SELECT data FROM "${name}" ORDER BY rowid ${order}`).iterate();
    for (const { data } of rows) keep(String(data));
    return true;
  } catch {
    return false;
  }
}

function keeper({ spec }: SqlCollection, found: Map<string, string>): (json: string) => void {
  const taken = new Set<string>();
  return (json) => {
    const record = readable(json);
    if (record === undefined || found.has(record.id)) return;
    const keys = keyValues(spec.unique, record).map(([key, value]) => `${key}\n${value}`);
    if (keys.some((key) => taken.has(key))) return;
    for (const key of keys) taken.add(key);
    found.set(record.id, json);
  };
}

function readable(json: string): AnyRecord | undefined {
  try {
    return parseRecord(json);
  } catch {
    return undefined;
  }
}
