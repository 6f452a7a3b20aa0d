// The meaning of filters: checks them against the declared fields and evaluates them for a record in memory. The SQL
// engines express the same in SQL (src/store/sql/sql-filter.ts); the contract's tests compare the two.
import type { FieldValue, Filter, IndexFilter, Query, ReferenceFilter } from './contract.ts';
import { type AnyRecord, type AnySpec, collectionSpecs, compareIds, isObject } from './record.ts';

export const defaultLimit = 50;

/** The type of a field's values; `any` for a member of an open object. */
type FieldKind = 'text' | 'number' | 'boolean' | 'any';

/** Returns the type of a field's values. @throws Error when the collection declares no such field. */
export function fieldKind(spec: AnySpec, field: string): FieldKind {
  if (field === 'id') return 'text';
  const declared = (name: string) =>
    Object.hasOwn(spec.fields ?? {}, name) ? spec.fields?.[name] : undefined;
  const kind = declared(field);
  if (kind !== undefined && kind !== 'members') return kind;
  const names = field.split('.');
  const isWithin = names.some((_, n) => declared(names.slice(0, n).join('.')) === 'members');
  // These characters cannot be escaped in a JSON path in SQL.
  if ((isWithin || kind === 'members') && names.every((name) => /^[^"\\\p{Cc}]+$/u.test(name))) return 'any';
  throw new Error(`there is no field "${field}" to filter or sort by`);
}

/** Returns whether a query's records come in id order, so that the next page can begin after the last of them. */
export const isInIdOrder = ({ sort, order, page }: Query): boolean =>
  sort === undefined && order === undefined && page === undefined;

/** @throws Error when it names a field that is not declared, or combines options that exclude each other. */
export function checkQuery(spec: AnySpec, { where, sort, order, after, page, limit = 1 }: Query): void {
  if (where !== undefined) checkFilter(spec, where);
  if (sort !== undefined && fieldKind(spec, sort.field) === 'any') {
    throw new Error(`there is no order by "${sort.field}"`);
  }
  if (after !== undefined && (sort !== undefined || page !== undefined)) {
    throw new Error('"after" goes with neither "sort" nor "page"');
  }
  if (order !== undefined && (sort !== undefined || after !== undefined)) {
    throw new Error('"order" goes with neither "sort" nor "after"');
  }
  if (!Number.isSafeInteger(limit) || limit < 0) throw new Error('"limit" must be a whole number');
  if (page !== undefined && (!Number.isSafeInteger(page) || page < 0)) {
    throw new Error('"page" must be a whole number');
  }
}

function checkFilter(spec: AnySpec, filter: Filter): void {
  if ('all' in filter) for (const one of filter.all) checkFilter(spec, one);
  else if ('any' in filter) for (const one of filter.any) checkFilter(spec, one);
  else if ('not' in filter) checkFilter(spec, filter.not);
  else if ('of' in filter) checkReference(spec, filter);
  else if ('index' in filter) checkIndex(spec, filter.index);
  else fieldKind(spec, filter.field);
}

function checkIndex(spec: AnySpec, index: string): void {
  if (!Object.hasOwn(spec.indexes, index)) throw new Error(`there is no index "${index}" to filter by`);
}

/** Only a database can look into two collections in one query. */
function checkReference(spec: AnySpec, { of, index }: ReferenceFilter): void {
  const other = collectionSpecs().find(([name]) => name === of)?.[1];
  if (other === undefined || other.kept !== undefined || spec.kept !== undefined) {
    throw new Error(`records of ${of} cannot be filtered by here`);
  }
  checkIndex(other, index);
}

/** Returns whether a record that the filter selects, of another collection, refers to the record with this id. */
export type IsReferenced = (filter: ReferenceFilter, id: string) => boolean;

export function matches(
  spec: AnySpec,
  record: AnyRecord,
  filter: Filter,
  isReferenced: IsReferenced,
): boolean {
  if ('all' in filter) return filter.all.every((one) => matches(spec, record, one, isReferenced));
  if ('any' in filter) return filter.any.some((one) => matches(spec, record, one, isReferenced));
  if ('not' in filter) return !matches(spec, record, filter.not, isReferenced);
  if ('of' in filter) return isReferenced(filter, record.id);
  if ('index' in filter) return indexMatches(spec, record, filter);
  const values =
    fieldKind(spec, filter.field) === 'any'
      ? memberValues(record, filter.field.split('.'))
      : [fieldValue(spec, record, filter.field) ?? []].flat();
  if ('exists' in filter) return values.length > 0 === filter.exists;
  return values.some((value) => compares(value, filter));
}

function indexMatches({ indexes }: AnySpec, record: AnyRecord, filter: IndexFilter): boolean {
  const values = [indexes[filter.index]?.(record) ?? []].flat();
  if ('equals' in filter) return values.includes(filter.equals);
  const { prefix, contains = '', suffix = '' } = filter;
  return values.some((value) => {
    const rest = value.slice(prefix.length);
    return value.startsWith(prefix) && rest.includes(contains) && rest.endsWith(suffix);
  });
}

type Comparison = Exclude<
  Filter,
  IndexFilter | ReferenceFilter | { all: unknown } | { any: unknown } | { not: unknown } | { exists: unknown }
>;

function compares(value: unknown, filter: Comparison): boolean {
  if ('equals' in filter) return value === filter.equals;
  if ('in' in filter) return filter.in.some((one) => one === value);
  if ('prefix' in filter) return typeof value === 'string' && value.startsWith(filter.prefix);
  if ('contains' in filter) return typeof value === 'string' && value.includes(filter.contains);
  if ('suffix' in filter) return typeof value === 'string' && value.endsWith(filter.suffix);
  return atLeast(value, filter.from) && atMost(value, filter.to);
}

/** Returns the values at a path, where each array on the way stands for its elements; null counts as no value. */
function memberValues(record: AnyRecord, path: string[]): unknown[] {
  let values: unknown[] = [record];
  for (const name of path) {
    values = values.flatMap((one) => (isObject(one) && Object.hasOwn(one, name) ? one[name] : []));
  }
  return values.filter((one) => one !== null && one !== undefined);
}

/** Returns the value of a declared field; undefined if there is none, or one of another type. */
export function fieldValue(spec: AnySpec, record: AnyRecord, field: string): FieldValue | undefined {
  const kind = fieldKind(spec, field);
  let value: unknown = record;
  for (const name of field.split('.')) {
    value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  const type = kind === 'text' ? 'string' : kind;
  return typeof value === type ? (value as FieldValue) : undefined;
}

/** Returns the comparison for the order that a query asks for. */
export function comparator(spec: AnySpec, sort: Query['sort']): (a: AnyRecord, b: AnyRecord) => number {
  if (sort === undefined) return (a, b) => compareIds(a.id, b.id);
  const direction = sort.descending === true ? -1 : 1;
  return (a, b) => {
    const [x, y] = [fieldValue(spec, a, sort.field), fieldValue(spec, b, sort.field)];
    if (x === undefined || y === undefined) {
      return Number(x === undefined) - Number(y === undefined) || compareIds(a.id, b.id);
    }
    return x < y ? -direction : x > y ? direction : compareIds(a.id, b.id);
  };
}

function atLeast(value: unknown, bound: string | number | undefined): boolean {
  return bound === undefined || (isFieldValue(value) && typeof value === typeof bound && value >= bound);
}

function atMost(value: unknown, bound: string | number | undefined): boolean {
  return bound === undefined || (isFieldValue(value) && typeof value === typeof bound && value <= bound);
}

const isFieldValue = (value: unknown): value is FieldValue =>
  ['string', 'number', 'boolean'].includes(typeof value);
