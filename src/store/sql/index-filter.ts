// Filters by declared indexes in SQL. The values of indexes are in a separate, ordered table: a rare value is found
// without reading other records, and the records of a frequent value are read in id order.
import type { Filter, IndexFilter, ReferenceFilter } from '../contract.ts';
import type { Dialect } from './dialect.ts';

/** How a condition is written: collects its parameters, in the dialect of the database. */
export interface Writing {
  parameter(value: string | number): string;
  dialect: Dialect;
}

/** Returns the condition that the id of `r` is one that an index filter selects. */
export function indexCondition(name: string, filter: IndexFilter, writing: Writing): string {
  return `r.id IN (SELECT k.id FROM "${name}_index" k WHERE ${indexRange('k', filter, writing).join(' AND ')})`;
}

/** Returns the conditions for the rows of an index table, named `table`, that an index filter selects. */
export function indexRange(table: string, filter: IndexFilter, writing: Writing): string[] {
  const key = `${table}.key = ${writing.parameter(filter.index)}`;
  if (!('equals' in filter)) return [key, ...prefixConditions(`${table}.value`, filter, writing)];
  return [key, `${table}.value = ${writing.parameter(writing.dialect.value(filter.equals))}`];
}

/** Returns the conditions that a value begins with a prefix and its rest contains or ends with a text. */
function prefixConditions(
  field: string,
  { prefix, contains, suffix }: Extract<IndexFilter, { prefix: string }>,
  writing: Writing,
): string[] {
  const { parameter, dialect } = writing;
  const rest = `substr(${field}, ${dialect.length(prefix) + 1})`;
  return [
    ...startsWith(field, prefix, writing),
    ...(contains === undefined ? [] : [dialect.contains(rest, parameter(contains))]),
    ...(suffix === undefined ? [] : endsWith(rest, suffix, writing)),
  ];
}

/** Returns the conditions that a text begins with another; their range lets the database use an index. */
export function startsWith(field: string, prefix: string, { parameter, dialect }: Writing): string[] {
  const after = prefix.isWellFormed() ? afterPrefix(prefix) : undefined;
  const range =
    after === undefined ? [] : [`${field} >= ${parameter(prefix)}`, `${field} < ${parameter(after)}`];
  if (after !== undefined && isWholeRange(prefix)) return range;
  // Cut by characters, not bytes, because the length of the prefix is counted in characters.
  return [...range, `substr(${field}, 1, ${dialect.length(prefix)}) = ${parameter(prefix)}`];
}

/**
 * Returns whether the range of a prefix contains only texts with that prefix, so that they need not be compared again.
 * Texts that are stored in another form begin with one of the first two characters; after U+10FFFF the range ends
 * further on.
 */
function isWholeRange(prefix: string): boolean {
  return !['\u0000', '\u0001'].some((one) => prefix.includes(one)) && !prefix.endsWith('\u{10ffff}');
}

/** Returns the condition that a text ends with another. */
export function endsWith(field: string, suffix: string, { parameter, dialect }: Writing): string[] {
  const length = dialect.length(suffix);
  return length === 0 ? [] : [`${dialect.last(field, length)} = ${parameter(suffix)}`];
}

/** Returns whether a filter depends on another collection. */
const isReferenced = (filter: Filter): filter is ReferenceFilter => 'of' in filter;

/** Returns the condition that a record of another collection refers to the record `r`. */
export function referenceCondition({ of, index, equals }: ReferenceFilter, writing: Writing): string {
  const start = `${equals}\n`;
  const id = `substr(k.value, ${writing.dialect.length(start) + 1})`;
  const key = `k.key = ${writing.parameter(index)}`;
  const range = startsWith('k.value', start, writing);
  return `r.id IN (SELECT ${id} FROM "${of}_index" k WHERE ${[key, ...range].join(' AND ')})`;
}

/** Returns the first text, by code point, after all that begin with a prefix; undefined if there is none. */
function afterPrefix(prefix: string): string | undefined {
  const codes = [...prefix].map((one) => one.codePointAt(0) ?? 0);
  while (codes.at(-1) === 0x10ffff) codes.pop();
  const last = codes.pop();
  if (last === undefined) return undefined;
  // Surrogates are not characters.
  return String.fromCodePoint(...codes, last === 0xd7ff ? 0xe000 : last + 1);
}

/**
 * A filter that all records of a query must match and whose index lists them in id order, and the remaining filters.
 */
interface Driven {
  driver: Extract<IndexFilter, { equals: string }> | ReferenceFilter;
  rest: readonly Filter[];
}

/** Returns the filter by which the records of a query are best read, if there is one. */
export function drivenBy(where: Filter | undefined): Driven | undefined {
  const all = where === undefined ? [] : 'all' in where ? where.all : [where];
  const at = all.findIndex((one) => 'of' in one || ('index' in one && 'equals' in one));
  const driver = all[at];
  if (driver === undefined || !('index' in driver) || !('equals' in driver)) return undefined;
  return { driver, rest: all.filter((_, n) => n !== at) };
}

/**
 * Returns the statement that counts the records a driver selects, or all of the collection without one. Expired records
 * are counted separately and subtracted: they are few, and checking each record against them would take most of the
 * time.
 * @param now epoch seconds
 */
export function driverTotal(
  name: string,
  driver: Driven['driver'] | undefined,
  now: number,
  dialect: Dialect,
) {
  const parameters: (string | number)[] = [];
  const parameter = (value: string | number) => dialect.parameter(parameters.push(value));
  const expired = () => `SELECT count(*) FROM "${name}" r WHERE r.expires_at <= ${parameter(now)}`;
  const difference = (all: string, taken: string) => ({
    sql: `SELECT (${all}) - (${taken}) AS n`,
    parameters,
  });
  if (driver === undefined) return difference(`SELECT count(*) FROM "${name}"`, expired());
  const key = () => `k.key = ${parameter(driver.index)}`;
  if (!isReferenced(driver)) {
    const there = () =>
      `"${name}_index" k WHERE ${key()} AND k.value = ${parameter(dialect.value(driver.equals))}`;
    const all = `SELECT count(*) FROM ${there()}`;
    return difference(all, `${expired()} AND EXISTS (SELECT 1 FROM ${there()} AND k.id = r.id)`);
  }
  const start = `${driver.equals}\n`;
  const range = () => startsWith('k.value', start, { parameter, dialect }).join(' AND ');
  const table = `"${driver.of}_index"`;
  // Not `count(DISTINCT …)`: SQLite sorts for that, but here it reads the values in the order of their index.
  const all = `SELECT count(*) FROM (SELECT DISTINCT k.value FROM ${table} k WHERE ${key()} AND ${range()}) m`;
  const held = () => `${key()} AND k.value = ${parameter(start)} || r.id`;
  return difference(all, `${expired()} AND EXISTS (SELECT 1 FROM ${table} k WHERE ${held()})`);
}

/** Where the ids are read from; without `table` from the collection's own table. */
export interface Drive {
  table: string | undefined;
  id: string;
  conditions: string[];
  /** Conditions that remove duplicates, where the table may list a record twice; a count uses `distinct` instead. */
  once: string[];
  distinct: string;
}

/** Returns the table and the conditions that list the ids of a driver's records, once each and in order. */
export function drive(name: string, { driver }: Driven, writing: Writing): Drive {
  const { parameter, dialect } = writing;
  if (!('of' in driver)) {
    const conditions = [
      `k.key = ${parameter(driver.index)}`,
      `k.value = ${parameter(dialect.value(driver.equals))}`,
    ];
    return { table: `"${name}_index"`, id: 'k.id', conditions, once: [], distinct: '*' };
  }
  const table = `"${driver.of}_index"`;
  const start = `${driver.equals}\n`;
  return {
    table,
    id: `substr(k.value, ${dialect.length(start) + 1})`,
    conditions: [`k.key = ${parameter(driver.index)}`, ...startsWith('k.value', start, writing)],
    // A user with two identities in one connection is listed once.
    once: [`NOT EXISTS (SELECT 1 FROM ${table} d WHERE d.key = k.key AND d.value = k.value AND d.id < k.id)`],
    distinct: 'DISTINCT k.value',
  };
}
