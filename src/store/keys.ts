// The keys that collections.ts declares, computed from a record; the same for every engine.
import type { CollectionSpec } from '../records/collection-spec.ts';
import { collections } from '../records/collections.ts';
import type { Stored } from '../records/record.ts';
import type { AnyRecord } from './record.ts';

/** A collection's declaration, seen without its record type: engines treat all records alike. */
export type AnySpec = CollectionSpec<Stored>;

/** Every collection that is declared, by name. */
export function collectionSpecs(): [name: string, spec: AnySpec][] {
  return Object.entries(collections).map(([name, spec]) => [name, spec as AnySpec]);
}

/**
 * The values a record has for each of the keys, without repetition (a user with two identities in one
 * connection has that connection's key once).
 */
export function keyValues(keys: AnySpec['unique'], record: AnyRecord): [key: string, value: string][] {
  return Object.entries(keys).flatMap(([name, key]) => {
    const values = key(record) ?? [];
    const distinct = typeof values === 'string' ? [values] : [...new Set(values)];
    return distinct.map((value): [string, string] => [name, value]);
  });
}

/** Whether a record has a value of a key. */
export function hasKey({ unique, indexes }: AnySpec, record: AnyRecord, key: string, value: string): boolean {
  const values = (unique[key] ?? indexes[key])?.(record) ?? [];
  return typeof values === 'string' ? values === value : values.includes(value);
}
