// One collection in memory: records by id, with their unique keys, indexes and expiry. No function here does I/O or is
// asynchronous, so each is one atomic step; the engine makes the changes durable.
//
// Records are kept as JSON text and parsed when read (a few microseconds; recently read ones stay parsed). For the
// garbage collector a text is one object and a parsed user about thirty; with 100,000 parsed users its pauses alone
// were 40 to 80 ms.
import type { Clock } from '../../runtime/clock.ts';
import { UniqueKeyError } from '../contract.ts';
import {
  type AnyRecord,
  type AnySpec,
  compareIds,
  type Encoded,
  isExpired,
  keyValues,
  parseRecord,
} from '../record.ts';

export interface Table {
  readonly name: string;
  readonly spec: AnySpec;
  readonly clock: Clock;
  /** The JSON text of each record. */
  readonly texts: Map<string, string>;
  /** The records that were read recently, parsed. */
  readonly parsed: Map<string, AnyRecord>;
  readonly ids: SortedIds;
  /** For each unique key: the ids by value. */
  readonly unique: Map<string, Map<string, string>>;
  /** For each index: the ids by value. Most values have one id, which is then stored without a set. */
  readonly indexes: Map<string, Map<string, string | Set<string>>>;
  readonly expiry: Expiry;
}

/**
 * What one write changed: the deleted ids, then the record put. `undo` reverts it; changes must be undone in reverse
 * order.
 */
export interface Change {
  readonly collection: string;
  readonly deleted: readonly string[];
  readonly put?: Encoded;
  undo(): void;
}

const maxParsed = 1000;

/** Creates an empty table. */
export function createTable(name: string, spec: AnySpec, clock: Clock): Table {
  return {
    name,
    spec,
    clock,
    texts: new Map(),
    parsed: new Map(),
    ids: createSortedIds(),
    unique: new Map(Object.keys(spec.unique).map((key) => [key, new Map()])),
    indexes: new Map(Object.keys(spec.indexes).map((key) => [key, new Map()])),
    expiry: createExpiry(),
  };
}

/** Returns the record with this id, unless it has expired. */
export function find(table: Table, id: string): AnyRecord | undefined {
  const record = current(table, id)?.record;
  return record === undefined || isExpired(record, table.clock()) ? undefined : record;
}

/**
 * Returns the records that have this value of a unique key or index, in id order.
 * @throws Error when collections.ts declares no such key.
 */
export function findBy(table: Table, key: string, value: string): AnyRecord[] {
  const ids = idsBy(table, key, value).sort(compareIds);
  return ids.flatMap((id) => find(table, id) ?? []);
}

/** Returns up to `limit` records after the id `after`, in id order, and whether more follow. */
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

/** Counts the records that have not expired. */
export function count(table: Table): number {
  return table.texts.size - expired(table, Infinity).length;
}

/** Returns at most `limit` ids of stored records that have expired at a time in epoch milliseconds. */
export function expired(table: Table, limit: number, now = table.clock()): string[] {
  return table.expiry.due(now, limit);
}

/**
 * Adds a record or, unless `mustBeNew`, replaces the one with its id. An expired record that has one of its unique keys
 * is deleted by the same change, so that setting the clock back cannot bring back two records with one key.
 * @throws UniqueKeyError when another record has one of its keys (or, if it must be new, its id).
 */
export function place(table: Table, put: Encoded, mustBeNew: boolean): Change {
  if (mustBeNew && find(table, put.record.id) !== undefined) throw new UniqueKeyError(table.name, 'id');
  return apply(table, expiredHolders(table, put.record), put);
}

/** Deletes records; ids without a record are ignored. */
export function remove(table: Table, ids: string[]): Change {
  return apply(
    table,
    ids.filter((id) => table.texts.has(id)),
  );
}

/** Adds a record while a table is filled from disk. @throws UniqueKeyError when an earlier one has one of its keys. */
export function fill(table: Table, json: string): void {
  const record = parseRecord(json);
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    if (table.unique.get(key)?.has(value)) throw new UniqueKeyError(table.name, key);
  }
  set(table, record.id, { record, json });
}

/** Returns a record, expired or not, with its JSON text. */
function current(table: Table, id: string): Encoded | undefined {
  const json = table.texts.get(id);
  if (json === undefined) return undefined;
  const record = table.parsed.get(id) ?? parseRecord(json);
  keepParsed(table, record);
  return { json, record };
}

function keepParsed(table: Table, record: AnyRecord): void {
  table.parsed.set(record.id, record);
  if (table.parsed.size <= maxParsed) return;
  const [oldest] = table.parsed.keys();
  if (oldest !== undefined) table.parsed.delete(oldest);
}

function idsBy(table: Table, key: string, value: string): string[] {
  const unique = table.unique.get(key);
  if (unique !== undefined) {
    const id = unique.get(value);
    return id === undefined ? [] : [id];
  }
  const index = table.indexes.get(key);
  if (index === undefined) throw new Error(`${table.name}: there is no index "${key}"`);
  const ids = index.get(value) ?? [];
  return typeof ids === 'string' ? [ids] : [...ids];
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
  const ids = put === undefined ? deleted : [...deleted, put.record.id];
  const before = ids.map((id): [string, Encoded | undefined] => [id, current(table, id)]);
  for (const id of deleted) set(table, id, undefined);
  if (put !== undefined) set(table, put.record.id, put);
  return {
    collection: table.name,
    deleted,
    ...(put === undefined ? {} : { put }),
    undo: () => {
      for (const [id, encoded] of before.reverse()) set(table, id, encoded);
    },
  };
}

/** Stores `next` as the record with this id (deletes the record if undefined), and updates keys, indexes and expiry. */
function set(table: Table, id: string, next: Encoded | undefined): void {
  const before = current(table, id);
  if (before !== undefined) unlist(table, before.record);
  if (next !== undefined) {
    table.texts.set(id, next.json);
    keepParsed(table, next.record);
    enlist(table, next.record);
    if (before === undefined) table.ids.add(id);
  } else if (before !== undefined) {
    table.texts.delete(id);
    table.parsed.delete(id);
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
    if (ids === undefined) index?.set(value, record.id);
    else if (typeof ids === 'string') index?.set(value, new Set([ids, record.id]));
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
    if (ids instanceof Set) ids.delete(record.id);
    if (!(ids instanceof Set) || ids.size === 0) index?.delete(value);
  }
  if (record.expiresAt !== undefined) table.expiry.remove(record.id, record.expiresAt);
}

// When records expire, in buckets of one minute: looking for expired records examines only the minutes that have begun.
// Moving a record's expiry, as each request of a session does, leaves no stale entry behind.

interface Expiry {
  /** Adds a record that expires at a time in epoch seconds. */
  add(id: string, expiresAt: number): void;
  /** Removes a record added with this time. */
  remove(id: string, expiresAt: number): void;
  /** Returns at most `limit` ids of records that have expired at a time in epoch milliseconds. */
  due(now: number, limit: number): string[];
}

const bucketSeconds = 60;
const bucketOf = (expiresAt: number) => Math.floor(expiresAt / bucketSeconds);

/** Returns an empty schedule. */
function createExpiry(): Expiry {
  const buckets = new Map<number, Map<string, number>>();
  /** The earliest bucket; undefined when it must be determined anew. */
  let earliest: number | undefined;
  const first = () => {
    earliest ??= [...buckets.keys()].reduce((least, bucket) => Math.min(least, bucket), Infinity);
    return earliest;
  };

  return {
    add(id, expiresAt) {
      const bucket = bucketOf(expiresAt);
      const entries = buckets.get(bucket);
      if (entries === undefined) buckets.set(bucket, new Map([[id, expiresAt]]));
      else entries.set(id, expiresAt);
      if (earliest !== undefined && bucket < earliest) earliest = bucket;
    },
    remove(id, expiresAt) {
      const bucket = bucketOf(expiresAt);
      const entries = buckets.get(bucket);
      entries?.delete(id);
      if (entries?.size !== 0) return;
      buckets.delete(bucket);
      if (bucket === earliest) earliest = undefined;
    },
    due(now, limit) {
      const current = bucketOf(now / 1000);
      if (first() > current) return [];
      const found: string[] = [];
      for (const [bucket, entries] of buckets) {
        if (bucket > current) continue;
        for (const [id, expiresAt] of entries) {
          if (expiresAt * 1000 > now) continue;
          found.push(id);
          if (found.length === limit) return found;
        }
      }
      return found;
    },
  };
}

// The ids of a collection in order, so that a page of `list` costs in proportion to the page and not to the collection.
// They are kept in sorted chunks of bounded length: adding or deleting moves at most one chunk.

interface SortedIds {
  add(id: string): void;
  delete(id: string): void;
  /** Yields the ids greater than `id`, or all of them, in order. Must not be continued after a change. */
  after(id: string | undefined): Generator<string>;
}

const maxChunk = 1024;

/** Returns an empty set of ids, sorted by `<`. */
function createSortedIds(): SortedIds {
  const chunks: string[][] = [];
  const chunkFor = (id: string) => firstIndex(chunks.length, (i) => (chunks[i]?.at(-1) ?? '') >= id);

  return {
    add(id) {
      const index = Math.min(chunkFor(id), Math.max(chunks.length - 1, 0));
      const chunk = chunks[index];
      if (chunk === undefined) {
        chunks.push([id]);
        return;
      }
      const position = positionIn(chunk, id);
      if (chunk[position] === id) return;
      chunk.splice(position, 0, id);
      if (chunk.length > maxChunk) chunks.splice(index + 1, 0, chunk.splice(maxChunk / 2));
    },
    delete(id) {
      const index = chunkFor(id);
      const chunk = chunks[index];
      if (chunk === undefined) return;
      const position = positionIn(chunk, id);
      if (chunk[position] !== id) return;
      chunk.splice(position, 1);
      if (chunk.length === 0) chunks.splice(index, 1);
    },
    *after(id) {
      for (let index = id === undefined ? 0 : chunkFor(id); index < chunks.length; index++) {
        for (const candidate of chunks[index] ?? []) {
          if (id === undefined || candidate > id) yield candidate;
        }
      }
    },
  };
}

/** Returns the position of an id in a sorted chunk, or where it would be inserted. */
function positionIn(chunk: string[], id: string): number {
  return firstIndex(chunk.length, (i) => (chunk[i] ?? '') >= id);
}

/**
 * Returns the first index below `length` for which `reached` is true, given that it is true for all indexes after it.
 */
function firstIndex(length: number, reached: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
