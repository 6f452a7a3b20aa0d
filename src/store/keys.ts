// The keys that collections.ts declares, computed from a record; the same for every engine.
import type { CollectionSpec } from '../records/collection-spec.ts';
import { collections } from '../records/collections.ts';
import type { Stored } from '../records/record.ts';
import type { AnyRecord } from './record.ts';

/** The declaration of a collection without its record type: engines treat all records alike. */
export type AnySpec = Omit<CollectionSpec<Stored>, 'writtenFor'>;

/** Returns every declared collection, by name. */
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

/** Returns whether a record has a value of a key. */
export function hasKey({ unique, indexes }: AnySpec, record: AnyRecord, key: string, value: string): boolean {
  const values = (unique[key] ?? indexes[key])?.(record) ?? [];
  return typeof values === 'string' ? values === value : values.includes(value);
}

/** Returns whether a key is a unique one. @throws Error when collections.ts declares no such key or index. */
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
