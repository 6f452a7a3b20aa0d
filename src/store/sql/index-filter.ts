// Filters by the declared indexes in SQL. The values of an index are in a table of their own, in order, so that what
// few records have is found without reading the others, and what many have can be read in the order of their ids.
import type { Filter, HeldFilter, IndexFilter } from '../contract.ts';
import { columnText } from './text.ts';

type Parameter = (value: string | number) => string;

/** Whether an id is one of those that a filter by an index means. */
export function indexCondition(name: string, filter: IndexFilter, parameter: Parameter): string {
  const value = (one: string) => parameter(columnText(one));
  const key = `k.key = ${parameter(filter.index)}`;
  const is =
    'equals' in filter ? [`k.value = ${value(filter.equals)}`] : within('k.value', filter, parameter);
  return `r.id IN (SELECT k.id FROM "${name}_index" k WHERE ${[key, ...is].join(' AND ')})`;
}

/** That a value begins with a prefix, and what must be true of the rest. */
function within(
  field: string,
  { prefix, contains, suffix }: Extract<IndexFilter, { prefix: string }>,
  parameter: Parameter,
): string[] {
  const rest = `substr(${field}, ${[...prefix].length + 1})`;
  return [
    ...startsWith(field, prefix, parameter),
    ...(contains === undefined ? [] : [`instr(${rest}, ${parameter(contains)}) > 0`]),
    ...(suffix === undefined ? [] : endsWith(rest, suffix, parameter)),
  ];
}

/** That a text begins with another: its range is what an index is used for. */
export function startsWith(field: string, prefix: string, parameter: Parameter): string[] {
  const after = prefix.isWellFormed() ? afterPrefix(prefix) : undefined;
  const range =
    after === undefined ? [] : [`${field} >= ${parameter(prefix)}`, `${field} < ${parameter(after)}`];
  // Cut by characters, not by bytes, as the prefix's length is counted.
  return [...range, `substr(${field}, 1, ${[...prefix].length}) = ${parameter(prefix)}`];
}

/** That a text ends with another. */
export function endsWith(field: string, suffix: string, parameter: Parameter): string[] {
  const length = [...suffix].length;
  return length === 0 ? [] : [`substr(${field}, -${length}) = ${parameter(suffix)}`];
}

/** Whether a record of another collection is of the one with an id. */
export function heldCondition({ of, index, equals }: HeldFilter, parameter: Parameter): string {
  const start = `${equals}\n`;
  const id = `substr(k.value, ${[...start].length + 1})`;
  const key = `k.key = ${parameter(index)}`;
  const range = startsWith('k.value', start, parameter);
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
  driver: Extract<IndexFilter, { equals: string }> | HeldFilter;
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
export function drive(name: string, { driver }: Driven, parameter: Parameter): Drive {
  if (!('of' in driver)) {
    const conditions = [
      `k.key = ${parameter(driver.index)}`,
      `k.value = ${parameter(columnText(driver.equals))}`,
    ];
    return { table: `"${name}_index"`, id: 'k.id', conditions, once: [], distinct: '*' };
  }
  const table = `"${driver.of}_index"`;
  const start = `${driver.equals}\n`;
  return {
    table,
    id: `substr(k.value, ${[...start].length + 1})`,
    conditions: [`k.key = ${parameter(driver.index)}`, ...startsWith('k.value', start, parameter)],
    // A user with two identities in a connection is one user.
    once: [`NOT EXISTS (SELECT 1 FROM ${table} d WHERE d.key = k.key AND d.value = k.value AND d.id < k.id)`],
    distinct: 'DISTINCT k.value',
  };
}
