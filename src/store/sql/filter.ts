// A query in SQL: what filter.ts says of records in memory.
import type { FieldValue, Filter, HeldFilter, IndexFilter, Query } from '../contract.ts';
import { defaultLimit, fieldKind } from '../filter.ts';
import type { AnySpec } from '../keys.ts';
import type { Dialect } from './dialect.ts';
import {
  type Drive,
  drive,
  drivenBy,
  endsWith,
  heldCondition,
  indexCondition,
  startsWith,
} from './index-filter.ts';
import { fieldColumn } from './schema.ts';
import { columnText } from './text.ts';

/** A statement and its parameters. */
interface Statement {
  sql: string;
  parameters: (string | number)[];
}

/**
 * The statements for a query: its page, with one record more than `limit` where more follow, and how many match.
 * @param now epoch seconds
 */
export function queryStatements(
  { name, spec }: { name: string; spec: AnySpec },
  query: Query,
  now: number,
  dialect: Dialect,
): { page: Statement; total: Statement } {
  const { where, sort, after, page = 0, limit = defaultLimit } = query;
  const parameters: (string | number)[] = [];
  const parameter = (value: string | number) => dialect.parameter(parameters.push(value));
  const field = (path: string) => {
    const kind = fieldKind(spec, path);
    if (kind === 'any') throw new Error(`${path} has no single value`);
    if (path === 'id') return 'r.id';
    return spec.indexed?.includes(path)
      ? `r.${fieldColumn(path)}`
      : dialect.field('r.data', path.split('.'), kind);
  };
  const isMember = (path: string) => fieldKind(spec, path) === 'any';
  // In another order than the ids' a driver would be in the way of that order's index.
  const driven = sort === undefined ? drivenBy(where) : undefined;
  const { table, id, conditions, once, distinct }: Drive =
    driven === undefined
      ? { table: undefined, id: 'r.id', conditions: [], once: [], distinct: '*' }
      : drive(name, driven, parameter);
  const rest = driven === undefined ? (where === undefined ? [] : [where]) : driven.rest;
  for (const one of rest) conditions.push(condition(one, { name, parameter, field, isMember, dialect }));
  // Few expire, and those have an index: so a record need not be read to be counted.
  conditions.push(`${id} NOT IN (SELECT id FROM "${name}" WHERE expires_at <= ${parameter(now)})`);
  const records = table === undefined ? `"${name}" r` : `${table} k CROSS JOIN "${name}" r ON r.id = ${id}`;
  const matching = `FROM ${records} WHERE ${[...conditions, ...once].join(' AND ')}`;
  const isDriven = table !== undefined && rest.length === 0;
  const counted = isDriven ? `FROM ${table} k WHERE ${conditions.join(' AND ')}` : matching;
  const what = isDriven ? distinct : '*';
  const total = totalStatement({ counted, what, parameters: [...parameters] }, query.total, dialect);
  const from = after === undefined ? '' : ` AND r.id > ${parameter(columnText(after))}`;
  const by = sort === undefined ? undefined : field(sort.field);
  const order = by === undefined ? '' : `${by} ${sort?.descending === true ? 'DESC' : 'ASC'} NULLS LAST, `;
  const inOrder =
    table === undefined ? `${order}r.id` : driven?.driver && 'of' in driven.driver ? 'k.value' : 'k.id';
  const bounds = `LIMIT ${parameter(limit + 1)} OFFSET ${parameter(page * limit)}`;
  const sql = `SELECT r.id, r.data, r.sum ${matching}${from} ORDER BY ${inOrder} ${bounds}`;
  return { page: { sql, parameters }, total };
}

/** How many there are, at most so many where that is said. */
function totalStatement(
  { counted, what, parameters }: { counted: string; what: string; parameters: (string | number)[] },
  most: Query['total'],
  { parameter }: Dialect,
): Statement {
  if (typeof most !== 'number' && what === '*') return { sql: `SELECT count(*) AS n ${counted}`, parameters };
  const row = what === '*' ? '1' : what;
  const limit = typeof most === 'number' ? ` LIMIT ${parameter(parameters.push(most))}` : '';
  // Not `count(DISTINCT …)`: SQLite sorts for that, and here it reads the values in the order of their index.
  return { sql: `SELECT count(*) AS n FROM (SELECT ${row} ${counted}${limit}) m`, parameters };
}

interface Terms {
  /** Of the collection. */
  name: string;
  parameter(value: string | number): string;
  field(path: string): string;
  /** Whether a field is a member at any depth, of which there may be several. */
  isMember(path: string): boolean;
  dialect: Dialect;
}

/** Each comparison is true or false, never null, so that `not` is the contrary of it. */
function condition(filter: Filter, terms: Terms): string {
  if ('all' in filter) return joined(filter.all, 'AND', 'TRUE', terms);
  if ('any' in filter) return joined(filter.any, 'OR', 'FALSE', terms);
  if ('not' in filter) return `NOT ${condition(filter.not, terms)}`;
  if ('of' in filter) return heldCondition(filter, terms.parameter);
  if ('index' in filter) return indexCondition(terms.name, filter, terms.parameter);
  if (terms.isMember(filter.field)) return memberCondition(filter, terms);
  const field = terms.field(filter.field);
  if ('exists' in filter) return filter.exists ? `(${field} IS NOT NULL)` : `(${field} IS NULL)`;
  const comparisons = compare(filter, field, terms);
  return `(${[`${field} IS NOT NULL`, ...comparisons].join(' AND ')})`;
}

type Comparison = Exclude<
  Filter,
  IndexFilter | HeldFilter | { all: unknown } | { any: unknown } | { not: unknown }
>;

function memberCondition(filter: Comparison, terms: Terms): string {
  const { member, memberKind: kinds } = terms.dialect;
  const path = filter.field.split('.');
  if ('exists' in filter) return `${filter.exists ? '' : 'NOT '}${member('r.data', path, kinds.any)}`;
  const kindOf = (value: FieldValue) =>
    typeof value === 'string' ? kinds.text : typeof value === 'number' ? kinds.number : kinds.boolean;
  if ('in' in filter) {
    const each = filter.in.map(
      (value) =>
        `(${[kindOf(value), ...compare({ field: filter.field, equals: value }, 'v.value', terms)].join(' AND ')})`,
    );
    return each.length === 0 ? 'FALSE' : member('r.data', path, each.join(' OR '));
  }
  const given = comparedWith(filter).filter((one) => one !== undefined);
  // Without a bound any value is meant, and no object.
  const kind =
    given.length === 0
      ? `(${kinds.text} OR ${kinds.number} OR ${kinds.boolean})`
      : given.map(kindOf).join(' AND ');
  return member('r.data', path, [kind, ...compare(filter, 'v.value', terms)].join(' AND '));
}

/** What a value must be of the same kind as. */
function comparedWith(filter: Exclude<Comparison, { exists: unknown } | { in: unknown }>) {
  if ('equals' in filter) return [filter.equals];
  if ('prefix' in filter) return [filter.prefix];
  if ('contains' in filter) return [filter.contains];
  return 'suffix' in filter ? [filter.suffix] : [filter.from, filter.to];
}

function compare(
  filter: Exclude<Comparison, { exists: unknown }>,
  field: string,
  { parameter }: Terms,
): string[] {
  const value = (one: FieldValue) => parameter(columnValue(one, filter.field));
  if ('equals' in filter) return [`${field} = ${value(filter.equals)}`];
  if ('in' in filter)
    return [filter.in.length === 0 ? 'FALSE' : `${field} IN (${filter.in.map(value).join(', ')})`];
  if ('prefix' in filter) {
    // An id is not written in a column as it is compared.
    if (filter.field !== 'id') return startsWith(field, filter.prefix, parameter);
    return [`substr(${field}, 1, ${[...filter.prefix].length}) = ${value(filter.prefix)}`];
  }
  if ('contains' in filter) return [`instr(${field}, ${parameter(filter.contains)}) > 0`];
  if ('suffix' in filter) return endsWith(field, filter.suffix, parameter);
  return [
    ...(filter.from === undefined ? [] : [`${field} >= ${value(filter.from)}`]),
    ...(filter.to === undefined ? [] : [`${field} <= ${value(filter.to)}`]),
  ];
}

function joined(filters: readonly Filter[], word: 'AND' | 'OR', none: string, terms: Terms): string {
  return filters.length === 0 ? none : `(${filters.map((one) => condition(one, terms)).join(` ${word} `)})`;
}

function columnValue(value: FieldValue, field: string): string | number {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'string' && field === 'id' ? columnText(value) : value;
}
