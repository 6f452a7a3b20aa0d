// The statements on a collection's tables in PostgreSQL. The keys of a record are rows of separate tables, as in every
// engine; the record's row also lists them, so that one statement deletes a record with its keys without reading it
// first. Each write is one statement and so atomic; it succeeds only if the row still has the version that was read.
// docs/understand/decisions/store.md#in-postgresql-a-record-is-a-row-with-its-json-as-it-was-written
import type { AnySpec } from '../record.ts';
import { postgresDialect } from '../sql/dialect.ts';
import { fieldColumn, readStatements } from '../sql/schema.ts';
import type { PreparedStatement } from './postgres-pool.ts';

export const keyTables = ({ unique, indexes }: AnySpec) => ({
  unique: Object.keys(unique).length > 0,
  index: Object.keys(indexes).length > 0,
});

/** Returns a function that returns the next parameter ($1, $2, …) of a statement. */
function numbered() {
  let count = 0;
  return () => `$${++count}`;
}

const there = (p: () => string, row = '') => `(${row}expires_at IS NULL OR ${row}expires_at > ${p()})`;

/** The key, and the value, of an entry (`slot` in table.ts) in a row's list. */
const keyIn = (slot: string) => `split_part(${slot}, E'\\n', 1)`;
const valueIn = (slot: string) => `substr(${slot}, strpos(${slot}, E'\\n') + 1)`;

/** Deletes the keys of the rows in `gone`, as their lists say. */
function keysOfGone(name: string, spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  const of = (table: string, list: string) =>
    `DELETE FROM "${table}" k USING gone g, unnest(g.${list}) s WHERE k.key = ${keyIn('s')} AND k.value = ${valueIn('s')} AND k.id = g.id`;
  return [
    ...(unique ? [`u AS (${of(`${name}_unique`, 'uniques')})`] : []),
    ...(index ? [`i AS (${of(`${name}_index`, 'indexes')})`] : []),
  ];
}

/** The columns with the lists of keys. */
function lists(spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  return [...(unique ? ['uniques'] : []), ...(index ? ['indexes'] : [])];
}

function deletion(name: string, spec: AnySpec, where: string, using = ''): string {
  const returned = ['r.id', 'r.data', ...lists(spec).map((list) => `r.${list}`)].join(', ');
  const gone = `gone AS (DELETE FROM "${name}" r${using} WHERE ${where} RETURNING ${returned})`;
  return `WITH ${[gone, ...keysOfGone(name, spec)].join(', ')} SELECT id, data FROM gone`;
}

/** The columns of a record. */
const columnsOf = (spec: AnySpec): string[] => [
  'id',
  'data',
  'expires_at',
  ...(spec.indexed ?? []).map(fieldColumn),
  ...lists(spec),
];

/**
 * Adds records and their keys, except those whose id is there.
 * @param source the values of {@link columnsOf}.
 * @param result what is returned of `added`.
 */
function recordAddition(name: string, spec: AnySpec, source: string, result: string): string {
  const returned = ['id', ...lists(spec)].join(', ');
  const added = `added AS (INSERT INTO "${name}" (${columnsOf(spec).join(', ')}) ${source} ON CONFLICT (id) DO NOTHING RETURNING ${returned})`;
  return `WITH ${[added, ...keysOfAdded(name, spec)].join(', ')} SELECT ${result} FROM added`;
}

/** Adds a record. Parameters: id, data, expires_at, indexed fields, lists of keys. */
function insertion(name: string, spec: AnySpec): string {
  const p = numbered();
  const values = columnsOf(spec).map((column) => (lists(spec).includes(column) ? `${p()}::text[]` : p()));
  return recordAddition(name, spec, `VALUES (${values.join(', ')})`, 'count(*)');
}

/**
 * Adds records, in the order given, except those whose id is there. Parameters: for each column of {@link insertion} a list
 * with a value of each record; lists of keys are texts, as {@link arrayText} returns them. Returns the ids of what was added.
 */
function insertionOfMany(name: string, spec: AnySpec): string {
  const p = numbered();
  const types: Readonly<Record<string, string>> = { expires_at: 'double precision' };
  const casts: Readonly<Record<string, string>> = {
    data: '::json',
    uniques: '::text[]',
    indexes: '::text[]',
  };
  const columns = columnsOf(spec);
  const given = `unnest(${columns.map((column) => `${p()}::${types[column] ?? 'text'}[]`).join(', ')}) g(${columns.join(', ')})`;
  const values = columns.map((column) => `g.${column}${casts[column] ?? ''}`);
  return recordAddition(name, spec, `SELECT ${values.join(', ')} FROM ${given}`, 'id');
}

/** Returns the text of an array in PostgreSQL. */
export const arrayText = (list: readonly string[]): string =>
  `{${list.map((one) => `"${one.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;

/** Adds the keys of the rows in `added`, as their lists say. */
function keysOfAdded(name: string, spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  const keys = (table: string, list: string) =>
    `INSERT INTO "${table}" (key, value, id) SELECT ${keyIn('s')}, ${valueIn('s')}, a.id FROM added a, unnest(a.${list}) s`;
  return [
    ...(unique ? [`u AS (${keys(`${name}_unique`, 'uniques')})`] : []),
    ...(index ? [`i AS (${keys(`${name}_index`, 'indexes')})`] : []),
  ];
}

/**
 * Replaces a record if its row has the version. Parameters: id, version, data, expires_at, fields, lists; then the
 * removed and added keys.
 */
function replacement(name: string, spec: AnySpec): string {
  const p = numbered();
  const [id, version] = [p(), p()];
  const columns = ['data', 'expires_at', ...(spec.indexed ?? []).map(fieldColumn)].map(
    (column) => `${column} = ${p()}`,
  );
  const listed = lists(spec).map((list) => `${list} = ${p()}::text[]`);
  const changed = `changed AS (UPDATE "${name}" SET ${[...columns, ...listed].join(', ')} WHERE id = ${id} AND xmin = ${version}::xid RETURNING id)`;
  const { unique, index } = keyTables(spec);
  const differences = [
    ...(unique ? ([['u', `${name}_unique`]] as const) : []),
    ...(index ? ([['i', `${name}_index`]] as const) : []),
  ].flatMap(([part, table]) => [
    `${part}d AS (DELETE FROM "${table}" k USING changed c, unnest(${p()}::text[]) s WHERE k.key = ${keyIn('s')} AND k.value = ${valueIn('s')} AND k.id = c.id)`,
    `${part}a AS (INSERT INTO "${table}" (key, value, id) SELECT ${keyIn('s')}, ${valueIn('s')}, c.id FROM changed c, unnest(${p()}::text[]) s)`,
  ]);
  return `WITH ${[changed, ...differences].join(', ')} SELECT count(*) FROM changed`;
}

/** Rewrites a record's row and adds all its keys, which must not exist yet. Parameters: as `rowOf` returns them. */
export function refill(name: string, spec: AnySpec): string {
  const p = numbered();
  const id = p();
  const columns = ['data', 'expires_at', ...(spec.indexed ?? []).map(fieldColumn)].map(
    (column) => `${column} = ${p()}`,
  );
  const listed = lists(spec).map((list) => `${list} = ${p()}::text[]`);
  const returned = ['id', ...lists(spec)].join(', ');
  const written = `added AS (UPDATE "${name}" SET ${[...columns, ...listed].join(', ')} WHERE id = ${id} RETURNING ${returned})`;
  return `WITH ${[written, ...keysOfAdded(name, spec)].join(', ')} SELECT count(*) FROM added`;
}

/** Adds index values to existing rows. Parameters: three lists of equal length with the id, the index and the value. */
export function addition(name: string): string {
  const given = 'given AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) g(id, key, value))';
  const slots = `SELECT id, array_agg(key || E'\\n' || value) AS slots FROM given GROUP BY id`;
  const listed = `listed AS (UPDATE "${name}" r SET indexes = r.indexes || s.slots FROM (${slots}) s WHERE r.id = s.id)`;
  return `WITH ${given}, ${listed} INSERT INTO "${name}_index" (key, value, id) SELECT key, value, id FROM given`;
}

/**
 * Reads rows by id, and the rows that they name by their keys. Columns: the index that names the row (empty for a
 * requested row), the requested id, id, data, version.
 */
function gettingNamed(name: string, named: NonNullable<AnySpec['named']>): string {
  const columns = (row: string) => postgresDialect.stored.map((column) => `${row}.${column}`).join(', ');
  const asked = 'r.id = ANY ($1::text[])';
  const others = Object.entries(named).map(
    ([index, { collection, prefix }]) =>
      `SELECT '${index}', r.id, ${columns('n')} FROM "${name}" r, unnest(r.indexes) s JOIN "${collection}" n ON n.id = '${prefix}' || ${valueIn('s')} WHERE ${asked} AND ${keyIn('s')} = '${index}'`,
  );
  return [`SELECT '', r.id, ${columns('r')} FROM "${name}" r WHERE ${asked}`, ...others].join(' UNION ALL ');
}

/** The statements of a collection; each is prepared in each connection that runs it. */
export type Statements = ReturnType<typeof postgresStatements>;

export function postgresStatements(name: string, spec: AnySpec) {
  const prepared = <N extends string>(texts: Record<N, string>) =>
    Object.fromEntries(
      Object.entries<string>(texts).map(([key, text]) => [key, { name: `${name}.${key}`, text }]),
    ) as Record<N, PreparedStatement>;
  const { unique, index } = keyTables(spec);
  const { get, holder, findUnique, findIndex, page, count } = readStatements(name, postgresDialect);
  const keyed = (list: string, table: string) => {
    const p = numbered();
    const [key, value] = [p(), p()];
    const found = `k.key = ${key} AND k.value = ${value} AND k.id = r.id AND ${there(p, 'r.')}`;
    // The list is checked again, because the row may have changed after its key was found.
    return deletion(name, spec, `${found} AND ${p()} = ANY (r.${list})`, ` USING "${name}_${table}" k`);
  };
  return prepared({
    get,
    getMany: get.replace('r.id = $1', 'r.id = ANY ($1::text[])'),
    getWithNamed: spec.named === undefined ? '' : gettingNamed(name, spec.named),
    getLocked: `${get} FOR UPDATE`,
    getAllLocked: `${get.replace('r.id = $1', 'r.id = ANY ($1::text[])')} ORDER BY r.id FOR UPDATE`,
    // Statements on a table that the collection does not have are never run.
    holder: unique ? holder : '',
    // Each is looked up by itself: as a join, a plan made while the table was small could read all of it.
    /** Returns those of some unique keys that a record has. Parameters: lists of equal length with the keys and the values. */
    held: unique
      ? `SELECT g.key, g.value FROM unnest($1::text[], $2::text[]) g(key, value) WHERE (SELECT 1 FROM "${name}_unique" k WHERE k.key = g.key AND k.value = g.value) = 1`
      : '',
    findUnique: unique ? findUnique : '',
    findIndex: index ? findIndex : '',
    page,
    count,
    insert: insertion(name, spec),
    insertMany: insertionOfMany(name, spec),
    /** Changes a record whose keys, fields and expiry stay. Parameters: id, version, data. */
    change: `UPDATE "${name}" SET data = $3 WHERE id = $1 AND xmin = $2::xid`,
    replace: replacement(name, spec),
    /** Deletes by id a record that has not expired by a time. */
    take: deletion(name, spec, ((p) => `id = ${p()} AND ${there(p)}`)(numbered())),
    /** Deletes by id a record that has expired by a time. */
    takeExpired: deletion(name, spec, 'id = $1 AND expires_at <= $2'),
    /** Delete by a unique key, and by an index. Parameters: key, value, time, slot. */
    deleteByUnique: unique ? keyed('uniques', 'unique') : '',
    deleteByIndex: index ? keyed('indexes', 'index') : '',
    /**
     * Deletes some records that have expired by a time, except those locked by others; in the order of the index on
     * expiry.
     */
    purge: deletion(
      name,
      spec,
      `id IN (SELECT id FROM "${name}" WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
    ),
  });
}
