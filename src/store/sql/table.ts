// Plans writes to one collection, taking into account what is committed and the pending changes. Nothing here is
// asynchronous, so each function is one atomic step; the writer commits what is planned.
import type { Clock } from '../../runtime/clock.ts';
import { UniqueKeyError } from '../contract.ts';
import { fieldValue } from '../filter.ts';
import { type AnyRecord, compareIds, type Encoded, isExpired, isUniqueKey, keyValues } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { checksum, columnText } from './row.ts';
import { type Operation, type SqlCollection, type WriteName, writes } from './schema.ts';

// The changes of a collection that are not durable yet. Writes take them into account; reads wait for them.

/** The pending change of a record; `encoded` is undefined for a deletion. */
interface Pending {
  encoded: Encoded | undefined;
  /** The values of the record's keys, as {@link slot} returns them. */
  slots: readonly string[];
  durable: Promise<void>;
}

interface Overlay {
  get(id: string): Pending | undefined;
  set(id: string, pending: Pending): void;
  /** Removes a change, unless a later change of the same record has replaced it. */
  settle(id: string, durable: Promise<void>): void;
  idsBy(key: string, value: string): string[];
  /** Returns the promises of all pending changes. */
  waits(): Set<Promise<void>>;
  readonly size: number;
}

/** Returns an overlay without changes. */
export function createOverlay(): Overlay {
  const changes = new Map<string, Pending>();
  const ids = new Map<string, Set<string>>();

  function forget(id: string): void {
    for (const at of changes.get(id)?.slots ?? []) {
      const sharing = ids.get(at);
      sharing?.delete(id);
      if (sharing?.size === 0) ids.delete(at);
    }
    changes.delete(id);
  }

  return {
    get: (id) => changes.get(id),
    set(id, pending) {
      forget(id);
      changes.set(id, pending);
      for (const at of pending.slots) {
        const sharing = ids.get(at);
        if (sharing === undefined) ids.set(at, new Set([id]));
        else sharing.add(id);
      }
    },
    settle(id, durable) {
      if (changes.get(id)?.durable === durable) forget(id);
    },
    idsBy: (key, value) => [...(ids.get(slot([key, value])) ?? [])],
    waits: () => new Set([...changes.values()].map(({ durable }) => durable)),
    get size() {
      return changes.size;
    },
  };
}

export const slot = ([key, value]: readonly [key: string, value: string]) => `${key}\n${value}`;

/** The committed records of one collection. */
export interface Committed {
  /** The record with this id, expired or not. */
  get(id: string): AnyRecord | undefined;
  /**
   * Called when a change of a record has ended.
   * @param record as it was committed; undefined if it was deleted or the outcome is unknown.
   */
  changed(id: string, record: AnyRecord | undefined): void;
  /** Returns the id of the record that has this value of a unique key. */
  holder(key: string, value: string): string | undefined;
  /** Returns the records that have this value of a key and have not expired by `now` (epoch seconds), in id order. */
  find(unique: boolean, key: string, value: string, now: number): AnyRecord[];
  /** Returns at most `limit` records with ids after `after`, in id order. */
  page(after: string, limit: number, now: number): AnyRecord[];
  count(now: number): number;
  /** Returns whether there is no record, expired or not. */
  isEmpty(): boolean;
  /** Returns at most `limit` records that have expired by `now`. */
  expired(now: number, limit: number): AnyRecord[];
}

export interface SqlTable {
  collection: SqlCollection;
  clock: Clock;
  committed: Committed;
  overlay: Overlay;
  seal: RecordSeal;
}

/** The effect of one write: its operations, and the new state of each record. */
export interface Change {
  table: SqlTable;
  operations: Operation[];
  after: (Pick<Pending, 'encoded' | 'slots'> & { id: string })[];
}

/** Returns the record with this id after the pending changes, unless it has expired. */
export function find(table: SqlTable, id: string): AnyRecord | undefined {
  const record = current(table, id);
  return record === undefined || isExpired(record, table.clock()) ? undefined : record;
}

/**
 * Returns the ids of records that have this value of a key after the pending changes, in order.
 * @throws Error when no such key is declared.
 */
export function idsBy(table: SqlTable, key: string, value: string): string[] {
  const committed = table.committed
    .find(isUniqueKey(table.collection, key), key, value, table.clock() / 1000)
    .map(({ id }) => id)
    .filter((id) => table.overlay.get(id) === undefined);
  const pending = table.overlay.idsBy(key, value).filter((id) => find(table, id) !== undefined);
  return [...committed, ...pending].sort(compareIds);
}

/**
 * Adds a record or, unless `mustBeNew`, replaces the one with its id. An expired record that has one of its unique keys
 * is deleted by the same change, so that setting the clock back cannot bring back two records with one key.
 * @param before the record with its id, if the caller has just read it
 * @throws UniqueKeyError when another record has one of its keys (or, if it must be new, its id).
 */
export function place(
  table: SqlTable,
  put: Encoded,
  mustBeNew: boolean,
  before = mustBeNew && isSurelyNew(table, put.record) ? undefined : current(table, put.record.id),
): Change {
  const { record } = put;
  if (mustBeNew && before !== undefined && !isExpired(before, table.clock())) {
    throw new UniqueKeyError(table.collection.name, 'id');
  }
  const [old, next] = [keysOf(table, before), keysOf(table, record)];
  const removed = remove(table, expiredHolders(table, record.id, old, next));
  return {
    table,
    operations: [
      ...removed.operations,
      ...keyOperations(table, record.id, old, next),
      write(table, put, before),
    ],
    after: [...removed.after, { id: record.id, encoded: put, slots: slotsOf(next) }],
  };
}

const isSurelyNew = ({ collection: { spec } }: SqlTable, record: AnyRecord) =>
  spec.hasRandomId?.(record) === true;

/** Updates only the JSON if expiry and indexed fields stay, as in most changes: then no index is written. */
function write(table: SqlTable, put: Encoded, before: AnyRecord | undefined): Operation {
  const { record } = put;
  const { name, spec } = table.collection;
  const text = table.seal.seal(put);
  const sum = checksum(name, text);
  const isAside = (one: AnyRecord) =>
    one.expiresAt === record.expiresAt &&
    (spec.indexed ?? []).every((path) => fieldValue(spec, one, path) === fieldValue(spec, record, path));
  if (before !== undefined && isAside(before)) {
    return [statement(table, 'change'), text, sum, columnText(record.id)];
  }
  return [statement(table, 'put'), columnText(record.id), text, record.expiresAt ?? null, sum];
}

/** Deletes records; ids without a record are ignored. */
export function remove(table: SqlTable, ids: string[]): Change {
  const records = ids.flatMap((id) => current(table, id) ?? []);
  return {
    table,
    operations: records.flatMap((record): Operation[] => [
      ...keyOperations(table, record.id, keysOf(table, record), NO_KEYS),
      [statement(table, 'remove'), columnText(record.id)],
    ]),
    after: records.map(({ id }) => ({ id, encoded: undefined, slots: [] })),
  };
}

function current({ overlay, committed }: SqlTable, id: string): AnyRecord | undefined {
  const pending = overlay.get(id);
  return pending === undefined ? committed.get(id) : pending.encoded?.record;
}

/** The values of a record's keys. */
interface Keys {
  unique: Pair[];
  indexes: Pair[];
}

type Pair = [key: string, value: string];

const NO_KEYS: Keys = { unique: [], indexes: [] };

function keysOf({ collection: { spec } }: SqlTable, record: AnyRecord | undefined): Keys {
  if (record === undefined) return NO_KEYS;
  return { unique: keyValues(spec.unique, record), indexes: keyValues(spec.indexes, record) };
}

const slotsOf = ({ unique, indexes }: Keys) => [...unique, ...indexes].map(slot);

/**
 * Returns the expired records that have unique keys which the record newly needs.
 * @throws UniqueKeyError when a record that has not expired has one of them.
 */
function expiredHolders(table: SqlTable, id: string, old: Keys, next: Keys): string[] {
  const holders = new Set<string>();
  for (const pair of without(next.unique, old.unique)) {
    const holder = holderOf(table, ...pair);
    if (holder === undefined || holder === id) continue;
    if (find(table, holder) !== undefined) throw new UniqueKeyError(table.collection.name, pair[0]);
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

/** Writes only the keys that change; in most writes none does. */
function keyOperations(table: SqlTable, id: string, old: Keys, next: Keys): Operation[] {
  const operations = (name: WriteName, pairs: Pair[]) =>
    pairs.map(([key, value]): Operation => [statement(table, name), key, columnText(value), columnText(id)]);
  return [
    ...operations('removeUnique', without(old.unique, next.unique)),
    ...operations('addUnique', without(next.unique, old.unique)),
    ...operations('removeIndex', without(old.indexes, next.indexes)),
    ...operations('addIndex', without(next.indexes, old.indexes)),
  ];
}

/** Returns the pairs that are not among others. Usually both lists are equal and in the same order. */
function without(all: Pair[], others: Pair[]): Pair[] {
  const isSame = (pair: Pair, n: number) => others[n]?.[0] === pair[0] && others[n]?.[1] === pair[1];
  if (all.every(isSame)) return [];
  const there = new Set(others.map(slot));
  return all.filter((pair) => !there.has(slot(pair)));
}

const statement = ({ collection }: SqlTable, name: WriteName) => collection.first + writes.indexOf(name);
