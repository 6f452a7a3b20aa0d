// Writes to one collection, judged: against what is committed and the changes that are to be. Nothing here is
// asynchronous, so that each function is one atomic step; committing what it makes is the writer's part.
import type { Clock } from '../../runtime/clock.ts';
import { UniqueKeyError } from '../contract.ts';
import { keyValues } from '../keys.ts';
import { type AnyRecord, compareIds, type Encoded, isExpired } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import type { Overlay } from './overlay.ts';
import { checksum } from './row.ts';
import { type Operation, type SqlCollection, type WriteName, writes } from './schema.ts';
import { columnText } from './text.ts';

/** The committed records of one collection. */
export interface Committed {
  /** The record with this id, expired or not. */
  get(id: string): AnyRecord | undefined;
  /** The id of the record that has this value of a unique key. */
  holder(key: string, value: string): string | undefined;
  /** The records, not expired by `now` (epoch seconds), that have this value of a key, in id order. */
  find(unique: boolean, key: string, value: string, now: number): AnyRecord[];
  /** At most `limit` records with their ids after `after`, in id order. */
  page(after: string, limit: number, now: number): AnyRecord[];
  count(now: number): number;
  /** At most `limit` records that have expired by `now`. */
  expired(now: number, limit: number): AnyRecord[];
}

export interface SqlTable {
  collection: SqlCollection;
  clock: Clock;
  committed: Committed;
  overlay: Overlay;
  seal: RecordSeal;
}

/** What one write does: its operations, and what becomes of each record. */
export interface Change {
  table: SqlTable;
  operations: Operation[];
  after: [id: string, encoded: Encoded | undefined][];
}

/** The record with this id as it will be, unless it has expired. */
export function find(table: SqlTable, id: string): AnyRecord | undefined {
  const record = current(table, id);
  return record === undefined || isExpired(record, table.clock()) ? undefined : record;
}

/** The ids of records that will have this value of a key, in order. @throws Error when no such key is declared. */
export function idsBy(table: SqlTable, key: string, value: string): string[] {
  const committed = table.committed
    .find(isUnique(table, key), key, value, table.clock() / 1000)
    .map(({ id }) => id)
    .filter((id) => table.overlay.get(id) === undefined);
  const pending = table.overlay.idsBy(key, value).filter((id) => find(table, id) !== undefined);
  return [...committed, ...pending].sort(compareIds);
}

/** Whether a key is a unique one. @throws Error when collections.ts declares no such key. */
export function isUnique({ collection: { name, spec } }: SqlTable, key: string): boolean {
  if (Object.hasOwn(spec.unique, key)) return true;
  if (Object.hasOwn(spec.indexes, key)) return false;
  throw new Error(`${name}: there is no index "${key}"`);
}

/**
 * Adds a record, or replaces the one with its id unless it must be new. An expired record that holds
 * one of its unique keys is deleted by the same change, so that no clock can bring the two together.
 * @throws UniqueKeyError when another record has one of its keys (or, if it must be new, its id).
 */
export function place(table: SqlTable, put: Encoded, mustBeNew: boolean): Change {
  const { record } = put;
  const before = current(table, record.id);
  if (mustBeNew && before !== undefined && !isExpired(before, table.clock())) {
    throw new UniqueKeyError(table.collection.name, 'id');
  }
  const removed = remove(table, expiredHolders(table, record, before));
  const { expiresAt = null } = record;
  const text = table.seal.seal(put);
  const sum = checksum(table.collection.name, text);
  return {
    table,
    operations: [
      ...removed.operations,
      ...keyOperations(table, before, record),
      [statement(table, 'put'), columnText(record.id), text, expiresAt, sum],
    ],
    after: [...removed.after, [record.id, put]],
  };
}

/** Deletes records; ids that are not there are no fault. */
export function remove(table: SqlTable, ids: string[]): Change {
  const records = ids.flatMap((id) => current(table, id) ?? []);
  return {
    table,
    operations: records.flatMap((record): Operation[] => [
      ...keyOperations(table, record, undefined),
      [statement(table, 'remove'), columnText(record.id)],
    ]),
    after: records.map(({ id }) => [id, undefined]),
  };
}

function current({ overlay, committed }: SqlTable, id: string): AnyRecord | undefined {
  const pending = overlay.get(id);
  return pending === undefined ? committed.get(id) : pending.encoded?.record;
}

/** @throws UniqueKeyError when one that has not expired holds a key that the record has now and had not before. */
function expiredHolders(table: SqlTable, record: AnyRecord, before: AnyRecord | undefined): string[] {
  const { name, spec } = table.collection;
  const held = new Set(before === undefined ? [] : keyValues(spec.unique, before).map(slot));
  const holders = new Set<string>();
  for (const pair of keyValues(spec.unique, record)) {
    if (held.has(slot(pair))) continue;
    const holder = holderOf(table, ...pair);
    if (holder === undefined || holder === record.id) continue;
    if (find(table, holder) !== undefined) throw new UniqueKeyError(name, pair[0]);
    holders.add(holder);
  }
  return [...holders];
}

function holderOf({ overlay, committed }: SqlTable, key: string, value: string): string | undefined {
  const [pending] = overlay.idsBy(key, value);
  if (pending !== undefined) return pending;
  const holder = committed.holder(key, value);
  return holder === undefined || overlay.get(holder) !== undefined ? undefined : holder;
}

/** Only what changes: most writes leave a record's keys as they are. */
function keyOperations(
  table: SqlTable,
  before: AnyRecord | undefined,
  after: AnyRecord | undefined,
): Operation[] {
  const { unique, indexes } = table.collection.spec;
  return [
    ...differences(table, unique, before, after, ['removeUnique', 'addUnique']),
    ...differences(table, indexes, before, after, ['removeIndex', 'addIndex']),
  ];
}

function differences(
  table: SqlTable,
  keys: SqlCollection['spec']['unique'],
  before: AnyRecord | undefined,
  after: AnyRecord | undefined,
  [removal, addition]: [WriteName, WriteName],
): Operation[] {
  const old = before === undefined ? [] : keyValues(keys, before);
  const next = after === undefined ? [] : keyValues(keys, after);
  const without = (all: [string, string][], others: [string, string][]) => {
    const there = new Set(others.map(slot));
    return all.filter((pair) => !there.has(slot(pair)));
  };
  const operation = (name: WriteName, record: AnyRecord | undefined) => {
    return ([key, value]: [string, string]): Operation => [
      statement(table, name),
      key,
      columnText(value),
      columnText(record?.id ?? ''),
    ];
  };
  return [
    ...without(old, next).map(operation(removal, before)),
    ...without(next, old).map(operation(addition, after)),
  ];
}

const slot = ([key, value]: [key: string, value: string]) => `${key}\n${value}`;

const statement = ({ collection }: SqlTable, name: WriteName) => collection.first + writes.indexOf(name);
