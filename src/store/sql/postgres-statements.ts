// The statements on a collection's tables in PostgreSQL. A record's keys are rows of tables beside its own, as in every
// engine; the record's row lists them, so that one statement deletes a record, known or not, with its keys. Each write is
// one statement, and so is whole or not done. It is made where the row is still the version that was read.
import type { AnySpec } from '../keys.ts';
import { postgresDialect } from './dialect.ts';
import type { PreparedStatement } from './postgres-pool.ts';
import { fieldColumn, readStatements } from './schema.ts';

/** Which tables of keys a collection has. */
export const keyTables = ({ unique, indexes }: AnySpec) => ({
  unique: Object.keys(unique).length > 0,
  index: Object.keys(indexes).length > 0,
});

/** Parts of a statement, and its parameters in the order in which they are named. */
function numbered() {
  let count = 0;
  return () => `$${++count}`;
}

const there = (p: () => string, row = '') => `(${row}expires_at IS NULL OR ${row}expires_at > ${p()})`;

/** What a slot (schema.ts) of a row's list says. */
const keyIn = (slot: string) => `split_part(${slot}, E'\\n', 1)`;
const valueIn = (slot: string) => `substr(${slot}, strpos(${slot}, E'\\n') + 1)`;

/** What deletes the keys of rows named `gone`, with their lists. */
function keysOfGone(name: string, spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  const of = (table: string, list: string) =>
    `DELETE FROM "${table}" k USING gone g, unnest(g.${list}) s WHERE k.key = ${keyIn('s')} AND k.value = ${valueIn('s')} AND k.id = g.id`;
  return [
    ...(unique ? [`u AS (${of(`${name}_unique`, 'uniques')})`] : []),
    ...(index ? [`i AS (${of(`${name}_index`, 'indexes')})`] : []),
  ];
}

/** The lists of keys of a record's row. */
function lists(spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  return [...(unique ? ['uniques'] : []), ...(index ? ['indexes'] : [])];
}

function deletion(name: string, spec: AnySpec, where: string, using = ''): string {
  const returned = ['r.id', 'r.data', ...lists(spec).map((list) => `r.${list}`)].join(', ');
  const gone = `gone AS (DELETE FROM "${name}" r${using} WHERE ${where} RETURNING ${returned})`;
  return `WITH ${[gone, ...keysOfGone(name, spec)].join(', ')} SELECT id, data FROM gone`;
}

/** Adds a record: id, data, expires_at, indexed fields, lists of keys. */
function insertion(name: string, spec: AnySpec): string {
  const p = numbered();
  const columns = ['id', 'data', 'expires_at', ...(spec.indexed ?? []).map(fieldColumn), ...lists(spec)];
  const values = columns.map((column) => (lists(spec).includes(column) ? `${p()}::text[]` : p()));
  const returned = ['id', ...lists(spec)].join(', ');
  const added = `added AS (INSERT INTO "${name}" (${columns.join(', ')}) VALUES (${values.join(', ')}) ON CONFLICT (id) DO NOTHING RETURNING ${returned})`;
  return `WITH ${[added, ...keysOfAdded(name, spec)].join(', ')} SELECT count(*) FROM added`;
}

/** What adds the keys of rows named `added`, with their lists. */
function keysOfAdded(name: string, spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  const keys = (table: string, list: string) =>
    `INSERT INTO "${table}" (key, value, id) SELECT ${keyIn('s')}, ${valueIn('s')}, a.id FROM added a, unnest(a.${list}) s`;
  return [
    ...(unique ? [`u AS (${keys(`${name}_unique`, 'uniques')})`] : []),
    ...(index ? [`i AS (${keys(`${name}_index`, 'indexes')})`] : []),
  ];
}

/** Replaces a record whose row is still of a version: id, version, data, expires_at, fields, lists; then what changes of the keys. */
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

/** Writes a record's row anew, keys and all, where its keys are not there: as {@link rowOf} gives it. */
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

/** Adds values of indexes to rows that are there: lists of ids, of the indexes and of the values, one of each for a value. */
export function addition(name: string): string {
  const given = 'given AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) g(id, key, value))';
  const slots = `SELECT id, array_agg(key || E'\\n' || value) AS slots FROM given GROUP BY id`;
  const listed = `listed AS (UPDATE "${name}" r SET indexes = r.indexes || s.slots FROM (${slots}) s WHERE r.id = s.id)`;
  return `WITH ${given}, ${listed} INSERT INTO "${name}_index" (key, value, id) SELECT key, value, id FROM given`;
}

/**
 * Rows of ids, and those that they name by their keys: the index that names it (none for a row that was asked for), the id
 * that was asked for, id, data, version.
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

/** Of each collection, prepared in each connection that runs it. */
export type Statements = ReturnType<typeof postgresStatements>;

/** The statements of a collection. */
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
    // A row that was changed meanwhile is asked again whether it has the key.
    return deletion(name, spec, `${found} AND ${p()} = ANY (r.${list})`, ` USING "${name}_${table}" k`);
  };
  return prepared({
    get,
    getMany: get.replace('r.id = $1', 'r.id = ANY ($1::text[])'),
    getWithNamed: spec.named === undefined ? '' : gettingNamed(name, spec.named),
    getLocked: `${get} FOR UPDATE`,
    getAllLocked: `${get.replace('r.id = $1', 'r.id = ANY ($1::text[])')} ORDER BY r.id FOR UPDATE`,
    // What a collection has no table for is never asked.
    holder: unique ? holder : '',
    findUnique: unique ? findUnique : '',
    findIndex: index ? findIndex : '',
    page,
    count,
    insert: insertion(name, spec),
    /** Of a record whose keys, fields and expiry stay: id, version, data. */
    change: `UPDATE "${name}" SET data = $3 WHERE id = $1 AND xmin = $2::xid`,
    replace: replacement(name, spec),
    /** By id, where it has not expired by a time. */
    take: deletion(name, spec, ((p) => `id = ${p()} AND ${there(p)}`)(numbered())),
    /** By id, where it has expired by a time. */
    takeExpired: deletion(name, spec, 'id = $1 AND expires_at <= $2'),
    /** By a unique key and by an index: key, value, time, slot. */
    deleteByUnique: unique ? keyed('uniques', 'unique') : '',
    deleteByIndex: index ? keyed('indexes', 'index') : '',
    /** Some that have expired by a time, and that nobody else works on; in the order of the index that finds them. */
    purge: deletion(
      name,
      spec,
      `id IN (SELECT id FROM "${name}" WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
    ),
  });
}
