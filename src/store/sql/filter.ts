// A query in SQL: what filter.ts says of records in memory.
import type { FieldValue, Filter, Query } from '../contract.ts';
import { defaultLimit, fieldKind } from '../filter.ts';
import type { AnySpec } from '../keys.ts';
import type { Dialect } from './dialect.ts';
import { columnText } from './text.ts';

/** A statement and its parameters. */
export interface Statement {
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
  const field = (path: string) =>
    path === 'id' ? 'r.id' : dialect.field(path.split('.'), fieldKind(spec, path));
  const conditions = [`(r.expires_at IS NULL OR r.expires_at > ${parameter(now)})`];
  if (where !== undefined) conditions.push(condition(where, { parameter, field }));
  const matching = `FROM "${name}" r WHERE ${conditions.join(' AND ')}`;
  const total = { sql: `SELECT count(*) AS n ${matching}`, parameters: [...parameters] };
  const from = after === undefined ? '' : ` AND r.id > ${parameter(columnText(after))}`;
  const by = sort === undefined ? undefined : field(sort.field);
  const order = by === undefined ? '' : `${by} IS NULL, ${by}${sort?.descending === true ? ' DESC' : ''}, `;
  const bounds = `LIMIT ${parameter(limit + 1)} OFFSET ${parameter(page * limit)}`;
  const sql = `SELECT r.id, r.data, r.sum ${matching}${from} ORDER BY ${order}r.id ${bounds}`;
  return { page: { sql, parameters }, total };
}

interface Terms {
  parameter(value: string | number): string;
  field(path: string): string;
}

/** Each comparison is true or false, never null, so that `not` is the contrary of it. */
function condition(filter: Filter, terms: Terms): string {
  if ('all' in filter) return joined(filter.all, 'AND', 'TRUE', terms);
  if ('any' in filter) return joined(filter.any, 'OR', 'FALSE', terms);
  if ('not' in filter) return `NOT ${condition(filter.not, terms)}`;
  const field = terms.field(filter.field);
  if ('exists' in filter) return filter.exists ? `(${field} IS NOT NULL)` : `(${field} IS NULL)`;
  const comparisons = compare(filter, field, terms);
  return `(${[`${field} IS NOT NULL`, ...comparisons].join(' AND ')})`;
}

function compare(
  filter: Exclude<Filter, { all: unknown } | { any: unknown } | { not: unknown } | { exists: unknown }>,
  field: string,
  { parameter }: Terms,
): string[] {
  const value = (one: FieldValue) => parameter(columnValue(one, filter.field));
  if ('equals' in filter) return [`${field} = ${value(filter.equals)}`];
  if ('in' in filter)
    return [filter.in.length === 0 ? 'FALSE' : `${field} IN (${filter.in.map(value).join(', ')})`];
  // Cut by characters, not by bytes, as the prefix's length is counted.
  if ('prefix' in filter) {
    return [`substr(${field}, 1, ${[...filter.prefix].length}) = ${value(filter.prefix)}`];
  }
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
