// What every store engine must do. Features import only this file and src/records/collections.ts; every engine must pass
// test/store/contract.ts.
import { AuthError } from '../http/errors.ts';
import type { Frozen, Stored } from '../records/base/record.ts';
import type { CollectionName, Records } from '../records/collections.ts';
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

/** Thrown when a store must already exist and does not. */
export class StoreAbsent extends Error {
  /** @param where the directory or database that was looked in. */
  constructor(where: string) {
    super(`${where}: there is no store`);
    this.name = 'StoreAbsent';
  }
}

/**
 * Thrown by every method while the database cannot answer: it is unreachable, restarting or overloaded. A write that throws this
 * may or may not have been made. The caller is asked to try again (status 503).
 */
export class StoreUnavailable extends AuthError {
  /** The error of the database or of the connection to it. */
  readonly database: unknown;

  /** @param reason for the log, together with `cause`. */
  constructor(reason: string, cause?: unknown) {
    super(503, 'temporarily_unavailable', 'The server is busy. Try again in a moment.', {
      cause: new Error(`the database cannot be used: ${reason}`, { cause }),
    });
    this.name = 'StoreUnavailable';
    this.database = cause;
  }
}

/**
 * A page of records, in id order (by character code, not by locale) unless `sort` says otherwise. In id order, pass `next` (an id)
 * as `after` to read the following page.
 */
export interface Page<T> {
  records: Frozen<T>[];
  next?: string;
  /** How many records match on all pages, if the query asked for it. */
  total?: number;
  /** Whether more records may match that were not examined; only for a query with `isBounded`. */
  isCut?: true;
}

export type FieldValue = string | number | boolean;

/**
 * Selects records by fields that collections.ts declares, or by `id`. A record without the field, or with a value of another type
 * there, matches no comparison with it. Ranges and prefixes compare character codes. Where a field is a member at any depth of an
 * object (`user_metadata.city`), it is enough that one element of an array matches.
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
 * Selects records by the values of a declared index. After `prefix`, the rest of the value may have to contain or end with a text.
 * To ignore case, declare an index whose values are lower-cased. `isSingle`: no record has two values with this prefix.
 */
export type IndexFilter =
  | { index: string; equals: string }
  | { index: string; prefix: string; contains?: string; suffix?: string; isSingle?: true };

/**
 * Selects the records that a record of the collection `of` refers to: the value of its index is `equals`, a line feed, and the id
 * of the selected record. Both collections must be kept in the database.
 */
export interface ReferenceFilter {
  of: CollectionName;
  index: string;
  equals: string;
}

/** Selects, orders and pages the records that `list` returns. */
export interface Query {
  where?: Filter;
  /** A declared field that is not a member of an open object. Records without it come last; ties are broken by id. */
  sort?: { field: string; descending?: boolean };
  /**
   * The order in which the store finds the records fastest; it is stable while nothing is written. Where many records match, the
   * store reads only as many as the pages so far need. Not together with `sort` or `after`.
   */
  order?: 'any';
  /**
   * Only with `order: 'any'`: where the indexes alone cannot decide which records match, and select many candidates, only the first
   * of these candidates are examined.
   */
  isBounded?: true;
  /** Returns only records after this id; only in id order. */
  after?: string;
  /** The number of the page, from 0, instead of `after`. */
  page?: number;
  /** The maximum number of records on a page (default 50). */
  limit?: number;
  /** Whether to count all matching records; a number is the maximum to count to. */
  total?: boolean | number;
}

/** A record and the records that it names. */
interface WithNamed<T> {
  record: Frozen<T>;
  named: readonly { collection: CollectionName; record: Frozen<Stored> }[];
}

/** A record that is written: the caller's own object, or one derived from a record of the store. */
export type Incoming<T> = T | Frozen<T>;

/** One write of a batch. */
export type Write = {
  [N in CollectionName]:
    | { collection: N; insert: Incoming<Records[N]> }
    | { collection: N; put: Incoming<Records[N]> }
    | { collection: N; delete: string }
    /** As {@link Collection.update}; does nothing when there is no such record. */
    | { collection: N; update: string; change(current: Frozen<Records[N]>): Incoming<Records[N]> };
}[CollectionName];

/**
 * One kind of record. A write resolves only when the change is durable. A read sees every write that has resolved, and never
 * returns a record that is not durable. An expired record is invisible to every method from the second it expires, and its id and
 * unique keys are free.
 *
 * Records are JSON data and are copied when written: properties that are undefined are dropped. Anything but an object with a
 * non-empty `id` is refused with a TypeError. A write that is refused, for whatever reason, changes nothing.
 */
export interface Collection<T extends Stored> {
  /** Adds a record. @throws UniqueKeyError when its id or one of its unique keys is taken. */
  insert(record: Incoming<T>): Promise<void>;
  /** Adds the record or replaces the one with its id. @throws UniqueKeyError when another record has one of its unique keys. */
  put(record: Incoming<T>): Promise<void>;
  /** The record with this id. */
  get(id: string): Promise<Frozen<T> | undefined>;
  /**
   * Returns the record with this id and the records that it names (`named` in collections.ts), all as of the same moment and in one
   * query. A named record may be missing when its id is too long for an index. Only engines whose database is another process (PostgreSQL) have this
   * method. src/engine/base/commit.ts keeps the named records for the rest of the request, outside of any signature.
   */
  getWithNamed?(id: string): Promise<WithNamed<T> | undefined>;
  /**
   * All records whose index or unique key `index` (declared in collections.ts) has this value, in id order.
   * @throws Error when no such index is declared.
   */
  findBy(index: string, value: string): Promise<Frozen<T>[]>;
  /**
   * Replaces a record by what `change` returns. Atomic: no other write happens between the read and the write. `change` is
   * synchronous and must keep the id; if it throws, the record stays as it was and the error is thrown on. It is called again when
   * another process changed the record first; only its last call counts.
   * @returns the new record, or undefined when there is none. `change` may have been called even then, if the record was deleted
   * meanwhile: to return a decision from it, use `updateWithResult` rather than a variable that it sets.
   */
  update(id: string, change: (current: Frozen<T>) => Incoming<T>): Promise<Frozen<T> | undefined>;
  /**
   * As `update`, but adds what `change` returns for undefined when there is no record. When two callers do so at once, the second
   * one changes what the first has added.
   * @returns the new record.
   */
  upsert(id: string, change: (current: Frozen<T> | undefined) => Incoming<T>): Promise<Frozen<T>>;
  /** Reads and deletes a record: of any number of concurrent callers exactly one gets it, the others undefined. */
  take(id: string): Promise<Frozen<T> | undefined>;
  /** Deletes a record; returns whether there was one. */
  delete(id: string): Promise<boolean>;
  /** Deletes all records that `findBy` would return; returns how many. */
  deleteBy(index: string, value: string): Promise<number>;
  /** Returns a page of the records that a query selects, or of all records. @throws Error for a field that is not declared. */
  list(query?: Query): Promise<Page<T>>;
  /** How many records there are. */
  count(): Promise<number>;
}

/** The records of a store as of one moment. */
export interface Snapshot {
  /** Epoch milliseconds. */
  at: number;
  /** The records of a collection that had not expired, in batches. Collections that are kept in memory only yield nothing. */
  records(collection: CollectionName): AsyncIterable<readonly Frozen<Stored>[]>;
}

export interface Store {
  /** True when no other process can have the store open, so that work left by an earlier process has no owner. */
  readonly exclusive?: true;
  /**
   * The time shared by all processes that have the store open, in epoch milliseconds; their own clocks may differ. Without it, a
   * process uses its own clock. It may be adjusted forward and back.
   */
  readonly sharedClock?: Clock;
  collection<N extends CollectionName>(name: N): Collection<Records[N]>;
  /**
   * A counter of writes to the configuration: it has risen before a write to a collection that is `cached` resolves. It is read at
   * each request, so an engine answers from memory and learns of other processes' writes by itself.
   */
  revision(): number;
  /**
   * Makes several writes as one, in this order: all or none, in one commit. Not for collections of the configuration, each of which
   * is a file of its own. A store defers nothing itself, but src/engine/base/commit.ts does: it gathers the grants and access tokens
   * that oidc-provider stores for a token response, outside of any signature, and writes them here in the end.
   * @throws as the single writes do.
   */
  batch(writes: readonly Write[]): Promise<void>;
  /**
   * Rewrites the data on disk so that nothing of a deleted record remains in it, for data that should never have been stored. A
   * plain deletion overwrites a record in its present place only, not in places where it was stored before.
   */
  compact(): Promise<void>;
  /**
   * Calls `work` with all records as of now and resolves with its result. Writes go on meanwhile, but `work` does not see them,
   * however long it takes.
   */
  withSnapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T>;
  /** Resolves when the store can be read and written, throws the reason otherwise (for /readyz). */
  ready(): Promise<void>;
  /** Waits for what is in flight and releases everything; the store is unusable afterwards. */
  close(): Promise<void>;
}

// Access to collections whose names are known only at run time.

/**
 * Returns the collection with a name that is only known at run time. The caller must write only records that it read
 * from this collection, or from the same collection of another store.
 */
export function collectionByName<Record extends Stored = Stored>(
  store: Store,
  name: CollectionName,
): Collection<Record> {
  // The type of a collection whose name is one of several accepts only what all of them accept, which is nothing.
  return store.collection(name) as unknown as Collection<Record>;
}

export function collectionsIn(all: ReadonlyMap<string, object>): Store['collection'] {
  // Each collection of the map holds only the records that were written to it under its own type.
  return ((name: CollectionName) => all.get(name)) as unknown as Store['collection'];
}

// Updates that also return a decision about the record, for what may happen only once.

/** What `decide` returns: its result and, where the record changes, the record that replaces it. */
interface Decision<T extends Stored, R> {
  result: R;
  next?: Incoming<T> | undefined;
}

/**
 * Updates a record and returns the result that `decide` gave for it. Setting a variable in `decide` would not be
 * reliable: another process may delete the record after `decide` was called, and then nothing is written.
 * @param decide called again when another process changed the record first; without `next` the record stays as it is.
 * @returns the result for the record as it was when it was replaced; undefined when there is no such record.
 */
export async function updateWithResult<T extends Stored, R>(
  records: Pick<Collection<T>, 'update'>,
  id: string,
  decide: (current: Frozen<T>) => Decision<T, R>,
): Promise<R | undefined> {
  let result: R | undefined;
  const found = await records.update(id, (current) => {
    const decision = decide(current);
    result = decision.result;
    return decision.next ?? (current as Incoming<T>);
  });
  return found === undefined ? undefined : result;
}
