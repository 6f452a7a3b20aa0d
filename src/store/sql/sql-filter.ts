// Queries in SQL; the same meaning as filter.ts has for records in memory.
import type { FieldValue, Filter, IndexFilter, Query, ReferenceFilter } from '../contract.ts';
import { defaultLimit, fieldKind } from '../filter.ts';
import type { AnySpec } from '../record.ts';
import { anyOrderStatement, branchesOf, type Statement } from './any-order.ts';
import type { Dialect } from './dialect.ts';
import {
  type Drive,
  drive,
  drivenBy,
  driverTotal,
  endsWith,
  indexCondition,
  referenceCondition,
  startsWith,
  type Writing,
} from './index-filter.ts';
import { fieldColumn } from './schema.ts';

/**
 * Returns the statements for a query: one for its page, which returns one record more than `limit` if more follow, and
 * one for the number of matches.
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
  const { field, isMember } = fieldsOf(spec, dialect);
  // With a sort order, reading by the driver's index would prevent reading by the index of that order.
  const driving = drivenBy(where);
  const driven = sort === undefined ? driving : undefined;
  const { table, id, conditions, once, distinct }: Drive =
    driven === undefined
      ? { table: undefined, id: 'r.id', conditions: [], once: [], distinct: '*' }
      : drive(name, driven, { parameter, dialect });
  const rest = driven === undefined ? (where === undefined ? [] : [where]) : driven.rest;
  for (const one of rest)
    conditions.push(condition(one, { name, spec, parameter, field, isMember, dialect }));
  // Few records have expired, and they have an index: this way a record need not be read to be counted.
  conditions.push(`${id} NOT IN (SELECT id FROM "${name}" WHERE expires_at <= ${parameter(now)})`);
  const records =
    table === undefined ? `"${name}" r` : `${table} k ${dialect.join} "${name}" r ON r.id = ${id}`;
  const matching = `FROM ${records} WHERE ${[...conditions, ...once].join(' AND ')}`;
  const isDriven = table !== undefined && rest.length === 0;
  const counted = isDriven ? `FROM ${table} k WHERE ${conditions.join(' AND ')}` : matching;
  const columns = isDriven ? distinct : '*';
  const isCountedByIndex = where === undefined || driving?.rest.length === 0;
  const total =
    isCountedByIndex && typeof query.total !== 'number'
      ? driverTotal(name, driving?.driver, now, dialect)
      : totalStatement({ counted, what: columns, parameters: [...parameters] }, query.total, dialect);
  const branches = query.order === 'any' ? branchesOf(where) : undefined;
  if (branches !== undefined) {
    const terms = (writing: Writing) => ({ ...writing, name, spec, field, isMember });
    const request = {
      name,
      page,
      limit,
      now,
      condition: (one: Filter, by: Writing) => condition(one, terms(by)),
    };
    return { page: anyOrderStatement(branches, request, dialect), total };
  }
  const from = after === undefined ? '' : ` AND r.id > ${parameter(dialect.id(after))}`;
  const by = sort === undefined ? undefined : field(sort.field);
  const direction = sort?.descending === true ? 'DESC' : 'ASC';
  // Every record has an id: with `NULLS LAST` PostgreSQL would not recognize the order of the primary key.
  const order =
    by === undefined ? '' : by === 'r.id' ? `r.id ${direction}, ` : `${by} ${direction} NULLS LAST, `;
  const inOrder =
    table === undefined ? `${order}r.id` : driven?.driver && 'of' in driven.driver ? 'k.value' : 'k.id';
  const stored = dialect.stored.map((column) => `r.${column}`).join(', ');
  const bounds = `LIMIT ${parameter(limit + 1)} OFFSET ${parameter(page * limit)}`;
  const sql = `SELECT ${stored} ${matching}${from} ORDER BY ${inOrder} ${bounds}`;
  return { page: { sql, parameters }, total };
}

function fieldsOf(spec: AnySpec, dialect: Dialect): Pick<Terms, 'field' | 'isMember'> {
  return {
    field: (path) => {
      const kind = fieldKind(spec, path);
      if (kind === 'any') throw new Error(`${path} has no single value`);
      if (path === 'id') return 'r.id';
      return spec.indexed?.includes(path)
        ? `r.${fieldColumn(path)}`
        : dialect.field('r.data', path.split('.'), kind);
    },
    isMember: (path) => fieldKind(spec, path) === 'any',
  };
}

/** Returns the statement that counts the matches, up to a maximum if `most` is a number. */
function totalStatement(
  { counted, what, parameters }: { counted: string; what: string; parameters: (string | number)[] },
  most: Query['total'],
  { parameter }: Dialect,
): Statement {
  if (typeof most !== 'number' && what === '*') return { sql: `SELECT count(*) AS n ${counted}`, parameters };
  const row = what === '*' ? '1' : what;
  const limit = typeof most === 'number' ? ` LIMIT ${parameter(parameters.push(most))}` : '';
  // Not `count(DISTINCT …)`: SQLite sorts for that, but here it reads the values in the order of their index.
  return { sql: `SELECT count(*) AS n FROM (SELECT ${row} ${counted}${limit}) m`, parameters };
}

interface Terms extends Writing {
  name: string;
  spec: AnySpec;
  field(path: string): string;
  /** Whether a field is a member at any depth, which may have several values. */
  isMember(path: string): boolean;
}

/** Each comparison is true or false, never null, so that `NOT` inverts it. */
function condition(filter: Filter, terms: Terms): string {
  if ('all' in filter) return joined(filter.all, 'AND', 'TRUE', terms);
  if ('any' in filter) return joined(filter.any, 'OR', 'FALSE', terms);
  if ('not' in filter) return `NOT ${condition(filter.not, terms)}`;
  if ('of' in filter) return referenceCondition(filter, terms);
  if ('index' in filter) return indexCondition(terms.name, filter, terms);
  if (terms.isMember(filter.field)) return memberCondition(filter, terms);
  const field = terms.field(filter.field);
  if ('exists' in filter) return filter.exists ? `(${field} IS NOT NULL)` : `(${field} IS NULL)`;
  const kind = fieldKind(terms.spec, filter.field);
  const comparisons = compare(filter, (one) => (one === kind ? field : undefined), terms);
  return `(${[`${field} IS NOT NULL`, ...comparisons].join(' AND ')})`;
}

type Comparison = Exclude<
  Filter,
  IndexFilter | ReferenceFilter | { all: unknown } | { any: unknown } | { not: unknown }
>;

type Kind = 'text' | 'number' | 'boolean';

/** The SQL value as a type; undefined if it is never of that type. */
type Compared = (kind: Kind) => string | undefined;

function kindOf(value: FieldValue): Kind {
  if (typeof value === 'string') return 'text';
  return typeof value === 'number' ? 'number' : 'boolean';
}

function memberCondition(filter: Comparison, terms: Terms): string {
  const { member, memberKind: kinds, memberValue } = terms.dialect;
  const path = filter.field.split('.');
  if ('exists' in filter) return `${filter.exists ? '' : 'NOT '}${member('r.data', path, kinds.any)}`;
  const value: Compared = (kind) => memberValue[kind];
  if ('in' in filter) {
    const each = filter.in.map(
      (one) =>
        `(${[kinds[kindOf(one)], ...compare({ field: filter.field, equals: one }, value, terms)].join(' AND ')})`,
    );
    return each.length === 0 ? 'FALSE' : member('r.data', path, each.join(' OR '));
  }
  const given = comparedWith(filter).filter((one) => one !== undefined);
  // A range without bounds selects any value but objects.
  const kind =
    given.length === 0
      ? `(${kinds.text} OR ${kinds.number} OR ${kinds.boolean})`
      : given.map((one) => kinds[kindOf(one)]).join(' AND ');
  return member('r.data', path, [kind, ...compare(filter, value, terms)].join(' AND '));
}

/** The values whose type a field must have. */
function comparedWith(filter: Exclude<Comparison, { exists: unknown } | { in: unknown }>) {
  if ('equals' in filter) return [filter.equals];
  if ('prefix' in filter) return [filter.prefix];
  if ('contains' in filter) return [filter.contains];
  return 'suffix' in filter ? [filter.suffix] : [filter.from, filter.to];
}

function compare(
  filter: Exclude<Comparison, { exists: unknown }>,
  compared: Compared,
  terms: Terms,
): string[] {
  const { parameter, dialect } = terms;
  const value = (one: FieldValue) => parameter(columnValue(one, filter.field, dialect));
  const is = (relation: string, one: FieldValue) => {
    const field = compared(kindOf(one));
    return field === undefined ? 'FALSE' : `${field} ${relation} ${value(one)}`;
  };
  if ('equals' in filter) return [is('=', filter.equals)];
  if ('in' in filter) return [isOneOf(filter.in, compared, value)];
  if ('prefix' in filter || 'contains' in filter || 'suffix' in filter) {
    const text = compared('text');
    if (text === undefined) return ['FALSE'];
    if ('contains' in filter) return [dialect.contains(text, parameter(filter.contains))];
    if ('suffix' in filter) return endsWith(text, filter.suffix, terms);
    // The column of an id may hold another form of it (see {@link Dialect.id}), so its range cannot be used.
    if (filter.field !== 'id') return startsWith(text, filter.prefix, terms);
    return [`substr(${text}, 1, ${dialect.length(filter.prefix)}) = ${value(filter.prefix)}`];
  }
  return [
    ...(filter.from === undefined ? [] : [is('>=', filter.from)]),
    ...(filter.to === undefined ? [] : [is('<=', filter.to)]),
  ];
}

function isOneOf(
  values: readonly FieldValue[],
  compared: Compared,
  parameter: (value: FieldValue) => string,
): string {
  const each = (['text', 'number', 'boolean'] as const).flatMap((kind) => {
    const field = compared(kind);
    const of = values.filter((one) => kindOf(one) === kind);
    return field === undefined || of.length === 0 ? [] : [`${field} IN (${of.map(parameter).join(', ')})`];
  });
  return each.length === 0 ? 'FALSE' : `(${each.join(' OR ')})`;
}

function joined(filters: readonly Filter[], word: 'AND' | 'OR', none: string, terms: Terms): string {
  return filters.length === 0 ? none : `(${filters.map((one) => condition(one, terms)).join(` ${word} `)})`;
}

function columnValue(value: FieldValue, field: string, { id }: Dialect): string | number {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'string' && field === 'id' ? id(value) : value;
}
