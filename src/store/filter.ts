// What a filter means, once: checked against the declared fields, and told of a record in memory. The SQL engines
// say the same in SQL (sql/filter.ts), and the contract's tests hold them together.
import type { FieldValue, Filter, Query } from './contract.ts';
import type { AnySpec } from './keys.ts';
import { type AnyRecord, compareIds, isObject } from './record.ts';

export const defaultLimit = 50;

/** The kind of a field's values. @throws Error when the collection declares no such field. */
export function fieldKind(spec: AnySpec, field: string): 'text' | 'number' | 'boolean' {
  if (field === 'id') return 'text';
  const kind = Object.hasOwn(spec.fields ?? {}, field) ? spec.fields?.[field] : undefined;
  if (kind === undefined) throw new Error(`there is no field "${field}" to filter or sort by`);
  return kind;
}

/** @throws Error when a query names a field that is not declared, or asks for what cannot be together. */
export function checkQuery(spec: AnySpec, { where, sort, after, page, limit = 1 }: Query): void {
  if (where !== undefined) checkFilter(spec, where);
  if (sort !== undefined) fieldKind(spec, sort.field);
  if (after !== undefined && (sort !== undefined || page !== undefined)) {
    throw new Error('"after" goes with neither "sort" nor "page"');
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
  else fieldKind(spec, filter.field);
}

/** Whether a record is one that a filter means. */
export function matches(spec: AnySpec, record: AnyRecord, filter: Filter): boolean {
  if ('all' in filter) return filter.all.every((one) => matches(spec, record, one));
  if ('any' in filter) return filter.any.some((one) => matches(spec, record, one));
  if ('not' in filter) return !matches(spec, record, filter.not);
  const value = fieldValue(spec, record, filter.field);
  if ('exists' in filter) return (value !== undefined) === filter.exists;
  if (value === undefined) return false;
  if ('equals' in filter) return value === filter.equals;
  if ('in' in filter) return filter.in.includes(value);
  if ('prefix' in filter) return typeof value === 'string' && value.startsWith(filter.prefix);
  return atLeast(value, filter.from) && atMost(value, filter.to);
}

/** The value of a declared field; undefined where there is none, or one of another kind. */
export function fieldValue(spec: AnySpec, record: AnyRecord, field: string): FieldValue | undefined {
  const kind = fieldKind(spec, field);
  let value: unknown = record;
  for (const name of field.split('.')) {
    value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  const type = kind === 'text' ? 'string' : kind;
  return typeof value === type ? (value as FieldValue) : undefined;
}

/** The order that a query asks for. */
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

function atLeast(value: FieldValue, bound: string | number | undefined): boolean {
  return bound === undefined || (typeof value === typeof bound && value >= bound);
}

function atMost(value: FieldValue, bound: string | number | undefined): boolean {
  return bound === undefined || (typeof value === typeof bound && value <= bound);
}
