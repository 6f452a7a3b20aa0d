// Filters by the declared indexes in SQL. The values of an index are in a table of their own, in order, so that what
// few records have is found without reading the others, and what many have can be read in the order of their ids.
import type { Filter, IndexFilter, ReferenceFilter } from '../contract.ts';
import type { Dialect } from './dialect.ts';

/** How a condition is written: its parameters, and what a database says in its own way. */
export interface Writing {
  parameter(value: string | number): string;
  dialect: Dialect;
}

/** Whether an id is one of those that a filter by an index means. */
export function indexCondition(name: string, filter: IndexFilter, writing: Writing): string {
  return `r.id IN (SELECT k.id FROM "${name}_index" k WHERE ${indexRange('k', filter, writing).join(' AND ')})`;
}

/** What is true of the rows of a table of values, under a name, that a filter by an index means. */
export function indexRange(table: string, filter: IndexFilter, writing: Writing): string[] {
  const key = `${table}.key = ${writing.parameter(filter.index)}`;
  if (!('equals' in filter)) return [key, ...within(`${table}.value`, filter, writing)];
  return [key, `${table}.value = ${writing.parameter(writing.dialect.value(filter.equals))}`];
}

/** That a value begins with a prefix, and what must be true of the rest. */
function within(
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

/** That a text begins with another: its range is what an index is used for. */
export function startsWith(field: string, prefix: string, { parameter, dialect }: Writing): string[] {
  const after = prefix.isWellFormed() ? afterPrefix(prefix) : undefined;
  const range =
    after === undefined ? [] : [`${field} >= ${parameter(prefix)}`, `${field} < ${parameter(after)}`];
  if (after !== undefined && isWholeRange(prefix)) return range;
  // Cut by characters, not by bytes, as the prefix's length is counted.
  return [...range, `substr(${field}, 1, ${dialect.length(prefix)}) = ${parameter(prefix)}`];
}

/**
 * Whether the range of a prefix has nothing else in it, so that no text of it need be cut. What columns write in another
 * form begins with the first two characters, and the range after the last character begins further on.
 */
function isWholeRange(prefix: string): boolean {
  return !['\u0000', '\u0001'].some((one) => prefix.includes(one)) && !prefix.endsWith('\u{10ffff}');
}

/** That a text ends with another. */
export function endsWith(field: string, suffix: string, { parameter, dialect }: Writing): string[] {
  const length = dialect.length(suffix);
  return length === 0 ? [] : [`${dialect.last(field, length)} = ${parameter(suffix)}`];
}

/** Whether a filter goes by another collection. */
const isReferenced = (filter: Filter): filter is ReferenceFilter => 'of' in filter;

/** Whether a record of another collection is of the one with an id. */
export function referenceCondition({ of, index, equals }: ReferenceFilter, writing: Writing): string {
  const start = `${equals}\n`;
  const id = `substr(k.value, ${writing.dialect.length(start) + 1})`;
  const key = `k.key = ${writing.parameter(index)}`;
  const range = startsWith('k.value', start, writing);
  return `r.id IN (SELECT ${id} FROM "${of}_index" k WHERE ${[key, ...range].join(' AND ')})`;
}

/** The first text, by character code, after all that begin with a prefix; undefined where there is none. */
function afterPrefix(prefix: string): string | undefined {
  const codes = [...prefix].map((one) => one.codePointAt(0) ?? 0);
  while (codes.at(-1) === 0x10ffff) codes.pop();
  const last = codes.pop();
  if (last === undefined) return undefined;
  // No character is a surrogate.
  return String.fromCodePoint(...codes, last === 0xd7ff ? 0xe000 : last + 1);
}

/** A filter that all of a query's records pass and that tells them in the order of their ids, and the others. */
interface Driven {
  driver: Extract<IndexFilter, { equals: string }> | ReferenceFilter;
  rest: readonly Filter[];
}

/** The filter of a query that its records are best read by, where it has such. */
export function drivenBy(where: Filter | undefined): Driven | undefined {
  const all = where === undefined ? [] : 'all' in where ? where.all : [where];
  const at = all.findIndex((one) => 'of' in one || ('index' in one && 'equals' in one));
  const driver = all[at];
  if (driver === undefined || !('index' in driver) || !('equals' in driver)) return undefined;
  return { driver, rest: all.filter((_, n) => n !== at) };
}

/**
 * How many records a driver means, all of the collection without one. Those that have expired are counted with them and
 * taken off: they are few, and to look for each record among them would take longer than all the rest.
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
  const less = (all: string, taken: string) => ({ sql: `SELECT (${all}) - (${taken}) AS n`, parameters });
  if (driver === undefined) return less(`SELECT count(*) FROM "${name}"`, expired());
  const key = () => `k.key = ${parameter(driver.index)}`;
  if (!isReferenced(driver)) {
    const there = () =>
      `"${name}_index" k WHERE ${key()} AND k.value = ${parameter(dialect.value(driver.equals))}`;
    const all = `SELECT count(*) FROM ${there()}`;
    return less(all, `${expired()} AND EXISTS (SELECT 1 FROM ${there()} AND k.id = r.id)`);
  }
  const start = `${driver.equals}\n`;
  const range = () => startsWith('k.value', start, { parameter, dialect }).join(' AND ');
  const table = `"${driver.of}_index"`;
  // Not `count(DISTINCT …)`: SQLite sorts for that, and here it reads the values in the order of their index.
  const all = `SELECT count(*) FROM (SELECT DISTINCT k.value FROM ${table} k WHERE ${key()} AND ${range()}) m`;
  const held = () => `${key()} AND k.value = ${parameter(start)} || r.id`;
  return less(all, `${expired()} AND EXISTS (SELECT 1 FROM ${table} k WHERE ${held()})`);
}

/** What the ids are read from; without a table from the collection's own. */
export interface Drive {
  table: string | undefined;
  id: string;
  conditions: string[];
  /** What tells a record once where the table may have it twice; counted otherwise by what is `distinct`. */
  once: string[];
  distinct: string;
}

/** The table and the condition that tell the ids of a driver's records, each once and in order. */
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
    // A user with two identities in a connection is one user.
    once: [`NOT EXISTS (SELECT 1 FROM ${table} d WHERE d.key = k.key AND d.value = k.value AND d.id < k.id)`],
    distinct: 'DISTINCT k.value',
  };
}
