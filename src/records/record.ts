// What all records have in common.

/** Deeply read-only. Records from the store are shared and must not be changed. */
export type Frozen<T> = T extends (infer U)[]
  ? readonly Frozen<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** Returns a copy of JSON data that may be changed. */
export function thawed<T>(value: T): Thawed<T> {
  if (Array.isArray(value)) return value.map(thawed) as Thawed<T>;
  if (typeof value !== 'object' || value === null) return value as Thawed<T>;
  // Built from entries, so that a member named `__proto__` is copied like any other.
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, thawed(one)])) as Thawed<T>;
}

type Thawed<T> = T extends readonly (infer U)[]
  ? Thawed<U>[]
  : T extends object
    ? { -readonly [K in keyof T]: Thawed<T[K]> }
    : T;

/** Every record has an id. One with `expiresAt` (epoch seconds) no longer exists from then on. */
export interface Stored {
  id: string;
  expiresAt?: number;
}
