// What every record has in common, whoever owns it.

/** Deeply read-only: a record handed out by the store belongs to the store and must not be changed. */
export type Frozen<T> = T extends (infer U)[]
  ? readonly Frozen<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** Every record has an id; one with `expiresAt` (epoch seconds) is gone from then on. */
export interface Stored {
  id: string;
  expiresAt?: number;
}
