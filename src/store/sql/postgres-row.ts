// A record as a row in PostgreSQL: what is beside its text, and its keys.
import { fieldValue } from '../filter.ts';
import { type AnySpec, keyValues } from '../keys.ts';
import type { AnyRecord } from '../record.ts';
import { slot } from './overlay.ts';
import type { Parameter } from './postgres-pool.ts';
import { idText, jsonToPostgres, valueText } from './postgres-text.ts';

/** A record's row: its id, its stored text, when it expires, its indexed fields, its lists of keys. */
export function rowOf(spec: AnySpec, record: AnyRecord, stored: string): Parameter[] {
  return [
    idText(record.id),
    jsonToPostgres(stored),
    record.expiresAt ?? null,
    ...(spec.indexed ?? []).map((path) => field(spec, record, path)),
    ...lists(spec, keysOf(spec, record)),
  ];
}

const field = (spec: AnySpec, record: AnyRecord, path: string) => {
  const value = fieldValue(spec, record, path);
  return typeof value === 'string' ? value : null;
};

/** Whether two records are alike in what is beside them in their row. */
export function isAside(spec: AnySpec, a: AnyRecord, b: AnyRecord): boolean {
  return (
    a.expiresAt === b.expiresAt &&
    (spec.indexed ?? []).every((path) => fieldValue(spec, a, path) === fieldValue(spec, b, path))
  );
}

/** The values of a record's keys, as they are listed in its row. */
interface Slots {
  unique: string[];
  indexes: string[];
}

/** The values of a record's unique keys and of its indexes, each with the name of its key. */
export function keysOf({ unique, indexes }: AnySpec, record: AnyRecord): Slots {
  const slots = (keys: AnySpec['unique']) =>
    keyValues(keys, record).map(([key, value]) => slot([key, valueText(value)]));
  return { unique: slots(unique), indexes: slots(indexes) };
}

const lists = ({ unique, indexes }: AnySpec, keys: Slots): string[][] => [
  ...(Object.keys(unique).length > 0 ? [keys.unique] : []),
  ...(Object.keys(indexes).length > 0 ? [keys.indexes] : []),
];

/** What of a list of keys goes, and what comes. */
export function differences(old: string[], next: string[]) {
  const [before, after] = [new Set(old), new Set(next)];
  const removed = old.filter((one) => !after.has(one));
  const added = next.filter((one) => !before.has(one));
  return { removed, added, same: removed.length === 0 && added.length === 0 };
}
