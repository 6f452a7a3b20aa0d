// What every store engine promises. Features see only this file and collections.ts; the engines
// (lowdb.ts, later postgres.ts) must pass test/store/contract.ts unchanged.
import type { CollectionName, Records } from '../records/collections.ts';
import type { Frozen, Stored } from '../records/record.ts';

/** Thrown by `insert`, `put` and `update` when a unique key (or the id, as `id`) is already taken. */
export class UniqueKeyError extends Error {
  readonly collection: string;
  readonly key: string;

  constructor(collection: string, key: string) {
    super(`${collection}: the unique key "${key}" is taken`);
    this.name = 'UniqueKeyError';
    this.collection = collection;
    this.key = key;
  }
}

/**
 * A page of records in id order (by character code, not by locale); `next` (an id) is passed back as
 * `after` for the page that follows.
 */
export interface Page<T> {
  records: Frozen<T>[];
  next?: string;
}

/**
 * One kind of record. All writes resolve only when the change is durable; all reads see every write
 * that has resolved, and show no record that is not durable. An expired record is invisible to every
 * method, from the second it expires, and its id and unique keys are free.
 *
 * Records are JSON data, copied on the way in: a property that is undefined is not kept. What is no
 * record (an object with an `id` that is not empty) is refused with a TypeError. A write that is refused,
 * for whatever reason, changes nothing.
 */
export interface Collection<T extends Stored> {
  /** Adds a record. @throws UniqueKeyError when its id or one of its unique keys is taken. */
  insert(record: T): Promise<void>;
  /** Adds the record or replaces the one with its id. @throws UniqueKeyError as `insert`, other than for the id. */
  put(record: T): Promise<void>;
  /** The record with this id. */
  get(id: string): Promise<Frozen<T> | undefined>;
  /**
   * All records whose index or unique key `index` (declared in collections.ts) has this value, in
   * id order. @throws Error when no such index is declared.
   */
  findBy(index: string, value: string): Promise<Frozen<T>[]>;
  /**
   * Replaces a record by what `change` makes of it; atomic: no other write comes between the read and
   * the write. `change` is synchronous and keeps the id; what it throws leaves the record as it was and
   * is thrown on.
   * @returns the new record, or undefined when there is none (`change` is then not called).
   */
  update(id: string, change: (current: Frozen<T>) => T): Promise<Frozen<T> | undefined>;
  /** Reads and deletes: of any number of racers exactly one gets the record, the others undefined. */
  take(id: string): Promise<Frozen<T> | undefined>;
  /** Deletes; true when there was a record. */
  delete(id: string): Promise<boolean>;
  /** Deletes all records that `findBy` would give; returns how many. */
  deleteBy(index: string, value: string): Promise<number>;
  /** A page of at most `limit` records (default 50) in id order, those after the id `after`. */
  list(page?: { after?: string; limit?: number }): Promise<Page<T>>;
  /** How many records there are. */
  count(): Promise<number>;
}

/** An open store. */
export interface Store {
  collection<N extends CollectionName>(name: N): Collection<Records[N]>;
  /** Resolves when the store can be read and written, throws the reason otherwise (for /readyz). */
  ready(): Promise<void>;
  /** Waits for what is in flight, folds and releases everything; the store is unusable afterwards. */
  close(): Promise<void>;
}
