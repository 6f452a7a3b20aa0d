// One collection in memory: records by id, their unique keys, indexes and expiry. No I/O and nothing
// asynchronous, so that each function here is one atomic step; making it durable is the engine's part.
import type { Clock } from '../http/runtime.ts';
import { UniqueKeyError } from './contract.ts';
import { createExpiry, type Expiry } from './expiry.ts';
import { type AnySpec, keyValues } from './keys.ts';
import { type AnyRecord, compareIds, type Encoded, isExpired } from './record.ts';
import { createSortedIds, type SortedIds } from './sorted-ids.ts';

export interface Table {
  readonly name: string;
  readonly spec: AnySpec;
  readonly clock: Clock;
  readonly records: Map<string, AnyRecord>;
  readonly ids: SortedIds;
  /** Each unique key's values, and the id that has them. */
  readonly unique: Map<string, Map<string, string>>;
  /** Each index's values, and the ids that share them. */
  readonly indexes: Map<string, Map<string, Set<string>>>;
  readonly expiry: Expiry;
}

/** What one write did: the ids deleted, then the record put. `undo` takes it back, newest change first. */
export interface Change {
  readonly collection: string;
  readonly deleted: readonly string[];
  readonly put?: Encoded;
  undo(): void;
}

/** An empty table. */
export function createTable(name: string, spec: AnySpec, clock: Clock): Table {
  return {
    name,
    spec,
    clock,
    records: new Map(),
    ids: createSortedIds(),
    unique: new Map(Object.keys(spec.unique).map((key) => [key, new Map()])),
    indexes: new Map(Object.keys(spec.indexes).map((key) => [key, new Map()])),
    expiry: createExpiry(),
  };
}

/** The record with this id, unless it has expired. */
export function find(table: Table, id: string): AnyRecord | undefined {
  const record = table.records.get(id);
  return record === undefined || isExpired(record, table.clock()) ? undefined : record;
}

/**
 * The records that have this value of a unique key or index, in id order.
 * @throws Error when collections.ts declares no such key.
 */
export function findBy(table: Table, key: string, value: string): AnyRecord[] {
  const ids = idsBy(table, key, value).sort(compareIds);
  return ids.flatMap((id) => find(table, id) ?? []);
}

/** Up to `limit` records in id order, from the one after `after` on, and whether more follow. */
export function page(table: Table, after: string | undefined, limit: number) {
  const records: AnyRecord[] = [];
  for (const id of table.ids.after(after)) {
    const record = find(table, id);
    if (record === undefined) continue;
    if (records.length === limit) return { records, more: true };
    records.push(record);
  }
  return { records, more: false };
}

/** How many records have not expired. */
export function count(table: Table): number {
  return table.records.size - expired(table, Infinity).length;
}

/** At most `limit` ids of records that have expired and are still kept. */
export function expired(table: Table, limit: number): string[] {
  return table.expiry.due(table.clock(), limit);
}

/**
 * Adds a record, or replaces the one with its id unless it must be new. An expired record that holds
 * one of its unique keys is deleted by the same change, so that no clock can bring the two together.
 * @throws UniqueKeyError when another record has one of its keys (or, if it must be new, its id).
 */
export function place(table: Table, put: Encoded, mustBeNew: boolean): Change {
  if (mustBeNew && find(table, put.record.id) !== undefined) throw new UniqueKeyError(table.name, 'id');
  return apply(table, expiredHolders(table, put.record), put);
}

/** Deletes records; ids that are not there are no fault. */
export function remove(table: Table, ids: string[]): Change {
  return apply(
    table,
    ids.filter((id) => table.records.has(id)),
  );
}

/**
 * Adds a record while a table is filled from disk.
 * @throws UniqueKeyError when an earlier one has one of its keys.
 */
export function fill(table: Table, record: AnyRecord): void {
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    if (table.unique.get(key)?.has(value)) throw new UniqueKeyError(table.name, key);
  }
  set(table, record.id, record);
}

function idsBy(table: Table, key: string, value: string): string[] {
  const unique = table.unique.get(key);
  if (unique !== undefined) {
    const id = unique.get(value);
    return id === undefined ? [] : [id];
  }
  const index = table.indexes.get(key);
  if (index === undefined) throw new Error(`${table.name}: there is no index "${key}"`);
  return [...(index.get(value) ?? [])];
}

function expiredHolders(table: Table, record: AnyRecord): string[] {
  const holders = new Set<string>();
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    const holder = table.unique.get(key)?.get(value);
    if (holder === undefined || holder === record.id) continue;
    if (find(table, holder) !== undefined) throw new UniqueKeyError(table.name, key);
    holders.add(holder);
  }
  return [...holders];
}

function apply(table: Table, deleted: string[], put?: Encoded): Change {
  const before = deleted.map((id): [string, AnyRecord | undefined] => [id, table.records.get(id)]);
  for (const id of deleted) set(table, id, undefined);
  if (put !== undefined) {
    before.push([put.record.id, table.records.get(put.record.id)]);
    set(table, put.record.id, put.record);
  }
  return {
    collection: table.name,
    deleted,
    ...(put === undefined ? {} : { put }),
    undo: () => {
      for (const [id, record] of before.reverse()) set(table, id, record);
    },
  };
}

/** Makes this the record with that id (none when undefined), and every key and index follow. */
function set(table: Table, id: string, record: AnyRecord | undefined): void {
  const before = table.records.get(id);
  if (before !== undefined) unlist(table, before);
  if (record !== undefined) {
    table.records.set(id, record);
    enlist(table, record);
    if (before === undefined) table.ids.add(id);
  } else if (before !== undefined) {
    table.records.delete(id);
    table.ids.delete(id);
  }
}

function enlist(table: Table, record: AnyRecord): void {
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    table.unique.get(key)?.set(value, record.id);
  }
  for (const [key, value] of keyValues(table.spec.indexes, record)) {
    const index = table.indexes.get(key);
    const ids = index?.get(value);
    if (ids === undefined) index?.set(value, new Set([record.id]));
    else ids.add(record.id);
  }
  if (record.expiresAt !== undefined) table.expiry.add(record.id, record.expiresAt);
}

function unlist(table: Table, record: AnyRecord): void {
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    table.unique.get(key)?.delete(value);
  }
  for (const [key, value] of keyValues(table.spec.indexes, record)) {
    const index = table.indexes.get(key);
    const ids = index?.get(value);
    ids?.delete(record.id);
    if (ids?.size === 0) index?.delete(value);
  }
  if (record.expiresAt !== undefined) table.expiry.remove(record.id, record.expiresAt);
}
