// A query in SQL: what filter.ts says of records in memory.
import type { FieldValue, Filter, Query } from '../contract.ts';
import { defaultLimit, fieldKind } from '../filter.ts';
import type { AnySpec } from '../keys.ts';
import type { Dialect } from './dialect.ts';
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
    return path === 'id' ? 'r.id' : dialect.field('r.data', path.split('.'), kind);
  };
  const isMember = (path: string) => fieldKind(spec, path) === 'any';
  const conditions = [`(r.expires_at IS NULL OR r.expires_at > ${parameter(now)})`];
  if (where !== undefined) conditions.push(condition(where, { parameter, field, isMember, dialect }));
  const matching = `FROM "${name}" r WHERE ${conditions.join(' AND ')}`;
  const total =
    typeof query.total === 'number'
      ? {
          sql: `SELECT count(*) AS n FROM (SELECT 1 ${matching} LIMIT ${dialect.parameter(parameters.length + 1)}) m`,
          parameters: [...parameters, query.total],
        }
      : { sql: `SELECT count(*) AS n ${matching}`, parameters: [...parameters] };
  const from = after === undefined ? '' : ` AND r.id > ${parameter(columnText(after))}`;
  const by = sort === undefined ? undefined : field(sort.field);
  const order = by === undefined ? '' : `${by} ${sort?.descending === true ? 'DESC' : 'ASC'} NULLS LAST, `;
  const bounds = `LIMIT ${parameter(limit + 1)} OFFSET ${parameter(page * limit)}`;
  const sql = `SELECT r.id, r.data, r.sum ${matching}${from} ORDER BY ${order}r.id ${bounds}`;
  return { page: { sql, parameters }, total };
}

interface Terms {
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
  if (terms.isMember(filter.field)) return memberCondition(filter, terms);
  const field = terms.field(filter.field);
  if ('exists' in filter) return filter.exists ? `(${field} IS NOT NULL)` : `(${field} IS NULL)`;
  const comparisons = compare(filter, field, terms);
  return `(${[`${field} IS NOT NULL`, ...comparisons].join(' AND ')})`;
}

type Comparison = Exclude<Filter, { all: unknown } | { any: unknown } | { not: unknown }>;

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
  const bounds =
    'equals' in filter ? [filter.equals] : 'prefix' in filter ? [filter.prefix] : [filter.from, filter.to];
  const given = bounds.filter((one) => one !== undefined);
  // Without a bound any value is meant, and no object.
  const kind =
    given.length === 0
      ? `(${kinds.text} OR ${kinds.number} OR ${kinds.boolean})`
      : given.map(kindOf).join(' AND ');
  return member('r.data', path, [kind, ...compare(filter, 'v.value', terms)].join(' AND '));
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
  // Cut by characters, not by bytes, as the prefix's length is counted.
  if ('prefix' in filter) {
    const { prefix } = filter;
    // The range is what an index is used for.
    const after = filter.field === 'id' || !prefix.isWellFormed() ? undefined : afterPrefix(prefix);
    const range = after === undefined ? [] : [`${field} >= ${value(prefix)}`, `${field} < ${value(after)}`];
    return [...range, `substr(${field}, 1, ${[...prefix].length}) = ${value(prefix)}`];
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

/** The first text, by character code, after all that begin with a prefix; undefined where there is none. */
function afterPrefix(prefix: string): string | undefined {
  const codes = [...prefix].map((one) => one.codePointAt(0) ?? 0);
  while (codes.at(-1) === 0x10ffff) codes.pop();
  const last = codes.pop();
  if (last === undefined) return undefined;
  // No character is a surrogate.
  return String.fromCodePoint(...codes, last === 0xd7ff ? 0xe000 : last + 1);
}
