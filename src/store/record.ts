// A record as the store keeps it: JSON data, checked and copied when written, frozen when read.

import type { CollectionSpec } from '../records/base/collection-spec.ts';
import type { Frozen, Stored } from '../records/base/record.ts';
import { collections } from '../records/collections.ts';

/** A record of any collection, as it is kept in memory. */
export type AnyRecord = Frozen<Stored>;

/** A record with its JSON text, which is what an engine writes to disk or sends to a database. */
export interface Encoded {
  record: AnyRecord;
  json: string;
}

/**
 * Copies a record by way of its JSON text, so that memory holds exactly what a reopened store would
 * read (no `undefined`, no dates) and nothing that the caller can still change.
 * @throws TypeError when it is not a record or cannot be JSON.
 */
export function encodeRecord(record: unknown): Encoded {
  const json = JSON.stringify(record);
  if (json === undefined) throw new TypeError('a record must be an object');
  return { json, record: parseRecord(json) };
}

/**
 * Encodes the record that replaces another one.
 * @throws TypeError when it has another id; otherwise as {@link encodeRecord}.
 */
export function encodeUpdate(collection: string, id: string, made: unknown): Encoded {
  const next = encodeRecord(made);
  if (next.record.id !== id) throw new TypeError(`${collection}: an update must keep the id`);
  return next;
}

/** @throws as {@link decodeRecord}, and SyntaxError for text that is not JSON. */
export function parseRecord(json: string): AnyRecord {
  return decodeRecord(JSON.parse(json));
}

/**
 * Checks that parsed JSON is a record, and freezes it.
 * @throws TypeError when it is not an object with a string `id` and, if any, a numeric `expiresAt`.
 */
export function decodeRecord(parsed: unknown): AnyRecord {
  if (!isObject(parsed)) throw new TypeError('a record must be an object');
  if (!hasId(parsed)) throw new TypeError('a record needs an id: a string that is not empty');
  const expiresAt = parsed.expiresAt;
  if (expiresAt !== undefined && typeof expiresAt !== 'number') {
    throw new TypeError('expiresAt must be a number of epoch seconds');
  }
  deepFreeze(parsed);
  return parsed;
}

/** Returns whether a parsed value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns whether a record has expired at a time in epoch milliseconds; it is expired from the second in `expiresAt`
 * on.
 */
export function isExpired(record: AnyRecord, now: number): boolean {
  return record.expiresAt !== undefined && record.expiresAt * 1000 <= now;
}

/** Compares ids as every engine must: by character code, not by locale. */
export function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function hasId(value: Record<string, unknown>): value is Record<string, unknown> & { id: string } {
  return typeof value.id === 'string' && value.id !== '';
}

function deepFreeze(value: object): void {
  for (const part of Object.values(value)) {
    if (typeof part === 'object' && part !== null) deepFreeze(part);
  }
  Object.freeze(value);
}

// The keys that collections.ts declares, computed from a record; the same for every engine.

/** The declaration of a collection without its record type: engines treat all records alike. */
export type AnySpec = Omit<CollectionSpec<Stored>, 'writtenFor'>;

export function collectionSpecs(): [name: string, spec: CollectionSpec<Stored>][] {
  return Object.entries(collections).map(([name, spec]) => [name, spec as CollectionSpec<Stored>]);
}

/**
 * Returns the values a record has for each of the keys, without duplicates (a user with two identities in one
 * connection has that connection's key once).
 */
export function keyValues(keys: AnySpec['unique'], record: AnyRecord): [key: string, value: string][] {
  return Object.entries(keys).flatMap(([name, key]) => {
    const values = key(record) ?? [];
    const distinct = typeof values === 'string' ? [values] : [...new Set(values)];
    return distinct.map((value): [string, string] => [name, value]);
  });
}

export function hasKey({ unique, indexes }: AnySpec, record: AnyRecord, key: string, value: string): boolean {
  const values = (unique[key] ?? indexes[key])?.(record) ?? [];
  return typeof values === 'string' ? values === value : values.includes(value);
}

/** @throws Error when collections.ts declares no such key or index. */
export function isUniqueKey({ name, spec }: { name: string; spec: AnySpec }, key: string): boolean {
  if (Object.hasOwn(spec.unique, key)) return true;
  if (Object.hasOwn(spec.indexes, key)) return false;
  throw new Error(`${name}: there is no index "${key}"`);
}

/**
 * Returns the added part of a declaration if it only adds indexes, so that the existing keys need not be written again;
 * undefined if anything else differs.
 * @param before the names of the keys that exist.
 */
export function addedIndexes(
  { unique, indexes }: AnySpec,
  before: { unique: readonly string[]; indexes: readonly string[] },
): AnySpec | undefined {
  const isKnown = (name: string) => before.indexes.includes(name);
  // The oldest releases did not record the names of keys.
  if (before.indexes.length === 0) return undefined;
  if (JSON.stringify(before.unique) !== JSON.stringify(Object.keys(unique))) return undefined;
  if (!before.indexes.every((name) => Object.hasOwn(indexes, name))) return undefined;
  return {
    unique: {},
    indexes: Object.fromEntries(Object.entries(indexes).filter(([name]) => !isKnown(name))),
  };
}
