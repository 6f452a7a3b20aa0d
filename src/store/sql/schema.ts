// The tables of the collections, and the statements on them. A collection has a table of records (id, JSON, expiry,
// checksum) and, if it has keys, tables of their values, because a record may have several values of a key. A field
// that records are sorted by has a column with an index, which is written only when the field changes; an index on an
// expression of the JSON would be written with every change. The dialect covers the differences between databases.
import { type AnySpec, collectionSpecs } from '../record.ts';
import type { Dialect } from './dialect.ts';

/** A collection that is kept in the database. */
export interface SqlCollection {
  name: string;
  spec: AnySpec;
  /** The position of its first statement in {@link writeStatements}. */
  first: number;
}

/** The writing statements of each collection, in this order. */
export const writes = [
  'put',
  'change',
  'remove',
  'addUnique',
  'removeUnique',
  'addIndex',
  'removeIndex',
] as const;
export type WriteName = (typeof writes)[number];

/** A writing statement, by its number, and its parameters. */
export type Operation = [statement: number, ...parameters: (string | number | null)[]];

export function sqlCollections(): SqlCollection[] {
  return collectionSpecs()
    .filter(([, spec]) => spec.kept === undefined)
    .map(([name, spec], n) => ({ name, spec, first: n * writes.length }));
}

/** Returns the statements that create missing tables; tables for keys only if the collection has such keys. */
export function creation(dialect: Dialect): string[] {
  const { text, keyed } = dialect;
  const keyTable = (table: string, keys: AnySpec['unique'], primary: string) =>
    Object.keys(keys).length === 0
      ? []
      : [
          `CREATE TABLE IF NOT EXISTS "${table}" (key ${text}, value ${text}, id ${text} NOT NULL, PRIMARY KEY (${primary}))`,
        ];
  return sqlCollections().flatMap(({ name, spec }) => [
    `CREATE TABLE IF NOT EXISTS "${name}" (id ${text} PRIMARY KEY, data TEXT NOT NULL, expires_at REAL, sum INTEGER NOT NULL DEFAULT 0${(spec.indexed ?? []).map((path) => `, ${fieldColumn(path)} ${text}`).join('')})`,
    `CREATE INDEX IF NOT EXISTS "${name}_expiry" ON "${name}" (expires_at) WHERE expires_at IS NOT NULL`,
    ...(spec.indexed ?? []).map(
      (path) =>
        `CREATE INDEX IF NOT EXISTS "${fieldIndex(name, path)}" ON "${name}" (${fieldColumn(path)}, id)`,
    ),
    ...textIndexes(name, spec, dialect).map(({ sql }) => sql),
    ...keyTable(`${name}_unique`, spec.unique, 'key, value').map((sql) => sql + keyed),
    ...keyTable(`${name}_index`, spec.indexes, 'key, value, id').map((sql) => sql + keyed),
  ]);
}

/**
 * Returns the statements that create the indexes on the records' JSON.
 * @param how for example CONCURRENTLY.
 * @param table the table's name in SQL, if it needs a schema.
 */
export function textIndexes(
  name: string,
  { indexedText = [] }: AnySpec,
  dialect: Dialect,
  how = '',
  table = `"${name}"`,
): { index: string; sql: string }[] {
  return indexedText.map((path) => {
    const index = fieldIndex(name, path);
    const field = fieldOf(dialect, 'data', path);
    return { index, sql: `CREATE INDEX ${how} IF NOT EXISTS "${index}" ON ${table} ((${field}), id)` };
  });
}

export const fieldColumn = (path: string) => `"field_${path}"`;

export const fieldIndex = (name: string, path: string) => `${name}_by_${path}`;

/** Returns the SQL for an indexed field (a text) in a record's JSON. */
export function fieldOf(dialect: Dialect, data: string, path: string): string {
  return dialect.field(data, path.split('.'), 'text');
}

/** Adds or replaces a record, with its indexed fields. */
function putStatement(name: string, indexed: readonly string[], dialect: Dialect): string {
  const { parameter: p } = dialect;
  const columns = ['id', 'data', 'expires_at', 'sum'];
  const fields = indexed.map(fieldColumn);
  const given = `(SELECT ${columns.map((column, n) => `${p(n + 1)} AS ${column}`).join(', ')}) g`;
  const values = [
    ...columns.map((column) => `g.${column}`),
    ...indexed.map((path) => fieldOf(dialect, 'g.data', path)),
  ];
  const replaced = [...columns.slice(1), ...fields].map((column) => `${column} = excluded.${column}`);
  return `INSERT INTO "${name}" (${[...columns, ...fields].join(', ')}) SELECT ${values.join(', ')} FROM ${given} WHERE TRUE ON CONFLICT (id) DO UPDATE SET ${replaced.join(', ')}`;
}

export function writeStatements(dialect: Dialect): string[] {
  const { parameter: p } = dialect;
  return sqlCollections().flatMap(({ name, spec }) => [
    putStatement(name, spec.indexed ?? [], dialect),
    `UPDATE "${name}" SET data = ${p(1)}, sum = ${p(2)} WHERE id = ${p(3)}`,
    `DELETE FROM "${name}" WHERE id = ${p(1)}`,
    `INSERT INTO "${name}_unique" (key, value, id) VALUES (${p(1)}, ${p(2)}, ${p(3)})`,
    `DELETE FROM "${name}_unique" WHERE key = ${p(1)} AND value = ${p(2)} AND id = ${p(3)}`,
    `INSERT INTO "${name}_index" (key, value, id) VALUES (${p(1)}, ${p(2)}, ${p(3)})`,
    `DELETE FROM "${name}_index" WHERE key = ${p(1)} AND value = ${p(2)} AND id = ${p(3)}`,
  ]);
}

/** Returns the reading statements of a collection; times are in epoch seconds. */
export function readStatements(name: string, { parameter: p, stored }: Dialect) {
  const columns = stored.map((column) => `r.${column}`).join(', ');
  const there = (n: number) => `(r.expires_at IS NULL OR r.expires_at > ${p(n)})`;
  const found = (table: string) =>
    `SELECT ${columns} FROM "${table}" k JOIN "${name}" r ON r.id = k.id WHERE k.key = ${p(1)} AND k.value = ${p(2)} AND ${there(3)} ORDER BY r.id`;
  return {
    /** The record with an id, expired or not. */
    get: `SELECT ${columns} FROM "${name}" r WHERE r.id = ${p(1)}`,
    /** The id that has this value of a unique key. */
    holder: `SELECT id FROM "${name}_unique" WHERE key = ${p(1)} AND value = ${p(2)}`,
    findUnique: found(`${name}_unique`),
    findIndex: found(`${name}_index`),
    /** The records after an id, up to a limit. */
    page: `SELECT ${columns} FROM "${name}" r WHERE r.id > ${p(1)} AND ${there(2)} ORDER BY r.id LIMIT ${p(3)}`,
    count: `SELECT (SELECT count(*) FROM "${name}") - (SELECT count(*) FROM "${name}" WHERE expires_at <= ${p(1)}) AS n`,
    any: `SELECT EXISTS (SELECT 1 FROM "${name}") AS n`,
    /** The records that have expired, up to a limit. */
    expired: `SELECT ${columns} FROM "${name}" r WHERE r.expires_at <= ${p(1)} LIMIT ${p(2)}`,
  };
}
