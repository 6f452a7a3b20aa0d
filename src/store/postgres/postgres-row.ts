// Converts records to rows in PostgreSQL, with the columns beside the JSON text and the keys.
import { fieldValue } from '../filter.ts';
import type { AnyRecord } from '../record.ts';
import { type AnySpec, keyValues } from '../record.ts';
import { idText, jsonToPostgres, type PlainParameter, valueText } from '../sql/postgres-text.ts';
import { slot } from '../sql/table.ts';
import type { Parameter } from './postgres-pool.ts';
import { arrayText } from './postgres-statements.ts';

/** Returns the columns of a record: id, stored text, expiry, indexed fields, lists of keys. */
export function rowOf(spec: AnySpec, record: AnyRecord, stored: string): Parameter[] {
  return [
    idText(record.id),
    jsonToPostgres(stored),
    record.expiresAt ?? null,
    ...(spec.indexed ?? []).map((path) => field(spec, record, path)),
    ...lists(spec, keysOf(spec, record)),
  ];
}

/** Returns, for each column of {@link rowOf}, a list with the values of all rows. */
export function columnsOf(rows: readonly (readonly Parameter[])[]): Parameter[] {
  const [first = []] = rows;
  const plain = (value: Parameter = null) =>
    Array.isArray(value) ? arrayText(value as string[]) : (value as PlainParameter);
  return first.map((_, at) => rows.map((row) => plain(row[at])));
}

const field = (spec: AnySpec, record: AnyRecord, path: string) => {
  const value = fieldValue(spec, record, path);
  return typeof value === 'string' ? value : null;
};

/** Returns whether two records have the same expiry and indexed fields. */
export function isAside(spec: AnySpec, a: AnyRecord, b: AnyRecord): boolean {
  return (
    a.expiresAt === b.expiresAt &&
    (spec.indexed ?? []).every((path) => fieldValue(spec, a, path) === fieldValue(spec, b, path))
  );
}

/** The values of a record's keys, as listed in its row. */
interface Slots {
  unique: string[];
  indexes: string[];
}

/** Returns the values of a record's unique keys and indexes, each with the name of its key. */
export function keysOf({ unique, indexes }: AnySpec, record: AnyRecord): Slots {
  const slots = (keys: AnySpec['unique']) =>
    keyValues(keys, record).map(([key, value]) => slot([key, valueText(value)]));
  return { unique: slots(unique), indexes: slots(indexes) };
}

const lists = ({ unique, indexes }: AnySpec, keys: Slots): string[][] => [
  ...(Object.keys(unique).length > 0 ? [keys.unique] : []),
  ...(Object.keys(indexes).length > 0 ? [keys.indexes] : []),
];

/** Returns which entries of a list of keys are removed and which are added. */
export function differences(old: string[], next: string[]) {
  const [before, after] = [new Set(old), new Set(next)];
  const removed = old.filter((one) => !after.has(one));
  const added = next.filter((one) => !before.has(one));
  return { removed, added, same: removed.length === 0 && added.length === 0 };
}
