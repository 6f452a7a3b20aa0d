// What every store engine promises. Features see only this file and collections.ts; every engine must pass
// test/store/contract.ts.
import { AuthError } from '../http/errors.ts';
import type { CollectionName, Records } from '../records/collections.ts';
import type { Frozen, Stored } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';

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

/** Thrown by `list` when a query takes too long. */
export class QueryTimeout extends Error {
  constructor() {
    super('the query took too long');
    this.name = 'QueryTimeout';
  }
}

/** Thrown where a store that must be there is opened, and is not. */
export class StoreAbsent extends Error {
  /** @param where one would be. */
  constructor(where: string) {
    super(`${where}: there is no store`);
    this.name = 'StoreAbsent';
  }
}

/**
 * Thrown by every method when the database is not fit to answer: it cannot be reached, restarts, or is overloaded. What
 * a write was to do may have been done. The same may be asked again in a moment, and a caller is told so.
 */
export class StoreUnavailable extends AuthError {
  /** What the database, or the way to it, said. */
  readonly database: unknown;

  /** @param reason for the log, with what was the cause. */
  constructor(reason: string, cause?: unknown) {
    super(503, 'temporarily_unavailable', 'The server is busy. Try again in a moment.', {
      cause: new Error(`the database cannot be used: ${reason}`, { cause }),
    });
    this.name = 'StoreUnavailable';
    this.database = cause;
  }
}

/**
 * A page of records, in id order (by character code, not by locale) unless `sort` says otherwise; in id order
 * `next` (an id) is passed back as `after` for the page that follows.
 */
export interface Page<T> {
  records: Frozen<T>[];
  next?: string;
  /** How many records match, on all pages; where it was asked for. */
  total?: number;
  /** Whether others may match, which were not looked at: of a query that `isBounded`. */
  isCut?: true;
}

/** What a filter compares a field with. */
export type FieldValue = string | number | boolean;

/**
 * Which records are meant, by fields that collections.ts declares (and `id`). A record without the field, or with
 * another kind of value there, matches no comparison with it. Ranges and prefixes are by character code. Where a
 * field is a member at any depth of an object (`user_metadata.city`), one element of an array is enough.
 */
export type Filter =
  | { field: string; equals: FieldValue }
  | { field: string; in: readonly FieldValue[] }
  | { field: string; prefix: string }
  | { field: string; contains: string }
  | { field: string; suffix: string }
  | { field: string; from?: string | number; to?: string | number }
  | { field: string; exists: boolean }
  | IndexFilter
  | ReferenceFilter
  | { all: readonly Filter[] }
  | { any: readonly Filter[] }
  | { not: Filter };

/**
 * Records one of whose values of a declared index is so; after `prefix` the rest of the value may have to hold or end
 * with something. An index whose values are folded is how capitals are disregarded. `isSingle`: no record has two values
 * that begin so.
 */
export type IndexFilter =
  | { index: string; equals: string }
  | { index: string; prefix: string; contains?: string; suffix?: string; isSingle?: true };

/**
 * Records that a record of another collection is of: that one's index has the value `equals`, a line feed, and the id
 * of the record that is looked for. Both collections must be in the database.
 */
export interface ReferenceFilter {
  of: CollectionName;
  index: string;
  equals: string;
}

/** What `list` gives of a collection. */
export interface Query {
  where?: Filter;
  /** By a declared field that is no member at any depth; records without it come last, and the id decides between equals. */
  sort?: { field: string; descending?: boolean };
  /**
   * In whichever order the store finds them soonest, which stays the same as long as nothing is written: of many that match no
   * more are looked at than the pages so far need. Goes with neither `sort` nor `after`.
   */
  order?: 'any';
  /**
   * Of a query in any order: where indexes do not tell which records match, and those that they tell are many, only the first
   * of these are looked at.
   */
  isBounded?: true;
  /** Those after this id: only in id order. */
  after?: string;
  /** The page, counted from 0, in place of `after`. */
  page?: number;
  /** The most records of a page (default 50). */
  limit?: number;
  /** Whether to count what matches on all pages; a number is the most that is counted. */
  total?: boolean | number;
}

/** A record, and those that it names. */
interface WithNamed<T> {
  record: Frozen<T>;
  named: readonly { collection: CollectionName; record: Frozen<Stored> }[];
}

/** A record on its way in: the caller's own, or one made of what the store gave. */
export type Incoming<T> = T | Frozen<T>;

/** One write of a batch. */
export type Write = {
  [N in CollectionName]:
    | { collection: N; insert: Incoming<Records[N]> }
    | { collection: N; put: Incoming<Records[N]> }
    | { collection: N; delete: string }
    /** As {@link Collection.update}; nothing is written where there is no such record. */
    | { collection: N; update: string; change(current: Frozen<Records[N]>): Incoming<Records[N]> };
}[CollectionName];

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
  insert(record: Incoming<T>): Promise<void>;
  /** Adds the record or replaces the one with its id. @throws UniqueKeyError as `insert`, other than for the id. */
  put(record: Incoming<T>): Promise<void>;
  /** The record with this id. */
  get(id: string): Promise<Frozen<T> | undefined>;
  /**
   * The record with this id, and those that it names (`named` in collections.ts), all as they are at one moment: one
   * question in place of several. Of those that are named some may be left out, by ids that no index takes. Only engines
   * that ask another process have it.
   */
  getWithNamed?(id: string): Promise<WithNamed<T> | undefined>;
  /**
   * All records whose index or unique key `index` (declared in collections.ts) has this value, in
   * id order. @throws Error when no such index is declared.
   */
  findBy(index: string, value: string): Promise<Frozen<T>[]>;
  /**
   * Replaces a record by what `change` makes of it; atomic: no other write comes between the read and
   * the write. `change` is synchronous and keeps the id; what it throws leaves the record as it was and
   * is thrown on. It is called again where another process was quicker: its last call counts.
   * @returns the new record, or undefined when there is none: `change` is then not called, or was called of one that is
   *   gone since. What it decides is taken from `updateWithResult`, and not from a variable that it sets.
   */
  update(id: string, change: (current: Frozen<T>) => Incoming<T>): Promise<Frozen<T> | undefined>;
  /**
   * As `update`, and adds what `change` makes of undefined where there is no record; of two that do so at once the
   * second changes what the first has added. @returns the new record.
   */
  upsert(id: string, change: (current: Frozen<T> | undefined) => Incoming<T>): Promise<Frozen<T>>;
  /** Reads and deletes: of any number of racers exactly one gets the record, the others undefined. */
  take(id: string): Promise<Frozen<T> | undefined>;
  /** Deletes; true when there was a record. */
  delete(id: string): Promise<boolean>;
  /** Deletes all records that `findBy` would give; returns how many. */
  deleteBy(index: string, value: string): Promise<number>;
  /** A page of the records that a query means; without one of all. @throws Error for a field that is not declared. */
  list(query?: Query): Promise<Page<T>>;
  /** How many records there are. */
  count(): Promise<number>;
}

/** The records of a store as they were at one snapshot. */
export interface Snapshot {
  /** Epoch milliseconds. */
  at: number;
  /** Those of a collection that had not expired, some at a time. Counters that need not survive are none. */
  records(collection: CollectionName): AsyncIterable<readonly Frozen<Stored>[]>;
}

/** An open store. */
export interface Store {
  /** That no other process can have it open: what an earlier one was at is nobody's any more. */
  readonly exclusive?: true;
  /**
   * What time it is for all processes that have it open, epoch milliseconds: their own clocks may differ. Without it one's own
   * clock is that. It may be set right, back and forth.
   */
  readonly sharedClock?: Clock;
  collection<N extends CollectionName>(name: N): Collection<Records[N]>;
  /**
   * How often the configuration was written: it has risen before a write to a collection that is `cached` resolves.
   * Asked at each request: an engine answers from memory, and hears of other processes' writes by itself.
   */
  revision(): number;
  /**
   * Makes several writes as one: all or none, in one commit, in this order. Not for collections of the
   * configuration, each of which is a file of its own. @throws as the single writes do.
   */
  batch(writes: readonly Write[]): Promise<void>;
  /**
   * Writes anew what is on disk, so that nothing of a deleted record is left in it: for when what was deleted should
   * never have been stored. Deleting alone overwrites a record where it lies, and not where it lay before.
   */
  compact(): Promise<void>;
  /**
   * Calls `work` with all records as they are now, while others go on writing; resolves with what it does. However long it
   * takes, it sees nothing that is written meanwhile.
   */
  withSnapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T>;
  /** Resolves when the store can be read and written, throws the reason otherwise (for /readyz). */
  ready(): Promise<void>;
  /** Waits for what is in flight and releases everything; the store is unusable afterwards. */
  close(): Promise<void>;
}
