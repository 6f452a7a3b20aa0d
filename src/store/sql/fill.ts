// Fills a new database with records and their keys.
import type { DatabaseSync } from 'node:sqlite';
import { type AnyRecord, keyValues, parseRecord } from '../record.ts';
import { sqliteDialect } from './dialect.ts';
import { checksum, columnText } from './row.ts';
import { type SqlCollection, sqlCollections, type WriteName, writeStatements, writes } from './schema.ts';

/**
 * Inserts records (JSON texts by collection and id) into an empty database.
 * @throws Error when two records have one unique key
 */
export function fillDatabase(
  database: DatabaseSync,
  records: ReadonlyMap<string, ReadonlyMap<string, string>>,
): void {
  database.exec('BEGIN IMMEDIATE');
  for (const collection of sqlCollections()) {
    const put = prepare(database, collection, 'put');
    const addKeys = keyAdder(database, collection);
    for (const json of records.get(collection.name)?.values() ?? []) {
      const record = parseRecord(json);
      put().run(columnText(record.id), json, record.expiresAt ?? null, checksum(collection.name, json));
      addKeys(record);
    }
  }
  database.exec('COMMIT');
}

export function keyAdder(database: DatabaseSync, collection: SqlCollection): (record: AnyRecord) => void {
  const addUnique = prepare(database, collection, 'addUnique');
  const addIndex = prepare(database, collection, 'addIndex');
  const { unique, indexes } = collection.spec;
  return (record) => {
    const id = columnText(record.id);
    for (const [key, value] of keyValues(unique, record)) addUnique().run(key, columnText(value), id);
    for (const [key, value] of keyValues(indexes, record)) addIndex().run(key, columnText(value), id);
  };
}

/** Prepares a statement when it is first needed: a collection without keys has no table of them. */
function prepare(database: DatabaseSync, { first }: SqlCollection, which: WriteName) {
  let prepared: ReturnType<DatabaseSync['prepare']> | undefined;
  return () => {
    prepared ??= database.prepare(writeStatements(sqliteDialect)[first + writes.indexOf(which)] ?? '');
    return prepared;
  };
}
