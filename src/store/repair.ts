// `gatehouse repair`: gives up what is damaged or missing in a store and keeps the rest. Each damaged file stays beside
// its replacement under the name `….damaged`.

import { existsSync } from 'node:fs';
import { readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { syncDirectory, syncFile } from '../runtime/files.ts';
import { configurationSpecs, databaseFile, expectStore } from './create.ts';
import { lockDirectory } from './lock.ts';
import { configurationFile, openConfiguration, type Texts, textsOf } from './lowdb/lowdb-file.ts';
import { type AnyRecord, isObject, keyValues } from './record.ts';
import { fillDatabase } from './sql/fill.ts';
import { RecordFault, type Row, recordOfRow, unopened } from './sql/row.ts';
import { type SqlCollection, sqlCollections } from './sql/schema.ts';
import { checkDatabase, createDatabase, DatabaseFault } from './sqlite/sqlite-file.ts';

/**
 * @returns one line for each thing that was damaged or missing, with what was kept of it; none if the store is intact.
 * @throws Error when a server has it open, when there is none, or when a newer release wrote it.
 */
export async function repairStore(dataDir: string): Promise<string[]> {
  const directory = join(dataDir, 'store');
  await expectStore(directory);
  const unlock = lockDirectory(dataDir);
  try {
    const lines: string[] = [];
    for (const [name] of configurationSpecs()) lines.push(...(await repairConfiguration(directory, name)));
    lines.push(...(await repairDatabase(databaseFile(directory))));
    await syncDirectory(directory);
    return lines;
  } finally {
    unlock();
  }
}

async function repairConfiguration(directory: string, name: string): Promise<string[]> {
  const file = configurationFile(directory, name);
  const fault = await openConfiguration(directory, name).then(
    () => undefined,
    (error: Error) => error,
  );
  if (fault === undefined) return [];
  const records = await readableRecords(file);
  await setAside(file);
  const low = await openConfiguration(directory, name, records);
  await low.write();
  return [`${fault.message}; kept ${records.size} records`];
}

/**
 * Returns the records of a file that is cut off or whose digest does not match; line by line if it is not valid JSON.
 */
async function readableRecords(file: string): Promise<Texts> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const value = parseJson(text);
  if (isObject(value)) {
    try {
      return textsOf(value.records);
    } catch {
      // An element is not a record: read line by line.
    }
  }
  const records = new Map<string, string>();
  for (const line of text.split('\n')) {
    const record = parseJson(line.replace(/,$/, ''));
    if (isObject(record) && typeof record.id === 'string') records.set(record.id, JSON.stringify(record));
  }
  return records;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function repairDatabase(file: string): Promise<string[]> {
  const fault = await checkDatabase(file).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (fault !== undefined && !(fault instanceof DatabaseFault)) throw fault;
  const { records, complete, damaged } = salvage(file);
  if (fault === undefined && damaged.length === 0) return [];
  const making = `${file}.new`;
  await rm(making, { force: true });
  const database = createDatabase(making);
  try {
    fillDatabase(database, records);
  } finally {
    database.close();
  }
  await syncFile(making);
  for (const one of [file, `${file}-wal`, `${file}-shm`]) await setAside(one);
  await rename(making, file);
  const count = [...records.values()].reduce((sum, one) => sum + one.size, 0);
  const lost = complete ? '' : '; what its damaged pages held is lost';
  const reason = fault?.message ?? `${file}: ${damaged.length} records are given up`;
  return [...damaged.map((one) => `${file}: ${one}`), `${reason}; kept ${count} records${lost}`];
}

async function setAside(file: string): Promise<void> {
  const stats = await stat(file).catch(() => undefined);
  if (stats !== undefined) await rename(file, `${file}.damaged`);
}

// Reads what is still readable in a damaged database.

interface Salvaged {
  /** The JSON text of each record, by collection and id. */
  records: Map<string, Map<string, string>>;
  /** Whether every table could be read to its end. */
  complete: boolean;
  /** Messages about the damaged records. */
  damaged: string[];
}

/** Reads each table from both ends up to the damage. A record with a unique key that an earlier one has is left out. */
function salvage(file: string): Salvaged {
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
    const rows = database.prepare(`SELECT id, data, sum FROM "${name}" ORDER BY rowid ${order}`).iterate();
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
      record = recordOfRow(name, row, unopened);
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
