// How a collection is declared: its keys, the fields it is searched by, and where it is kept.

/** A key computed from a record: one value, several, or none. */
export type Key<T> = (record: T) => string | string[] | undefined;

/** How many records of a kind strangers can make the server keep. */
export interface Bound<T> {
  /** The kind of a record, which is bounded by itself; undefined for records that the bound is not for. */
  kind(record: T): string | undefined;
  /** How many records of a kind there may be in all, about. */
  max: number;
  /** How many of them an address may have (IPv6: a /64), each with the most recent. */
  maxOfAddress?: number;
  /** The length of a new record as JSON. */
  maxLength: number;
  /**
   * What happens beyond the bounds. `evict`: whoever has most, first by network and then by address, loses the oldest one.
   * `refuse`: a network and an address may only have a share, and a request that would exceed it is refused; for records
   * whose loss would let somebody do something again.
   */
  whenFull: 'evict' | 'refuse';
  /** Whether somebody has proved something for the record. It is evicted after the others of its address. */
  isBegun?(record: T): boolean;
}

// docs/understand/decisions/passwords-protection.md#every-collection-declares-who-can-cause-its-records-and-what-bounds-them
/**
 * Who can cause a record to be written, and what bounds the number of records.
 * - `operators`: administrators and their programs, or the server itself a few.
 * - `users`: somebody who has logged in; the text says what bounds the records of one user.
 * - `rate`: strangers, as many as the named limits or bounds let in a time, because the records must stay.
 * - `strangers`: anybody; the store enforces the bounds (store/bounded.ts). A collection with several kinds of records has an
 *   index `kind`, by which each is counted.
 */
export type WrittenFor<T> =
  | 'operators'
  | { users: string }
  | { rate: string }
  | { strangers: readonly Bound<T>[]; others?: string };

export interface CollectionSpec<T> {
  writtenFor: WrittenFor<T>;
  /** Keys of which at most one record may have a given value. */
  unique: Record<string, Key<T>>;
  /** Keys that any number of records may share. */
  indexes: Record<string, Key<T>>;
  /**
   * Returns whether the id of an inserted record was drawn at random with so many bits that it cannot exist yet, so
   * that it need not be looked up.
   */
  hasRandomId?: (record: T) => boolean;
  /**
   * Indexes whose values refer to other records: the prefix followed by a value is the id of a record of the collection.
   * Such records can be read together with this one (`getWithNamed` of the contract).
   */
  named?: Record<string, { collection: string; prefix: string }>;
  /**
   * The fields that `list` can filter and sort by, beside the id, with their types (`a.b` is the member b of a).
   * `members` is an object whose members, at any depth and of any type, can be filtered by.
   */
  fields?: Record<string, 'text' | 'number' | 'boolean' | 'members'>;
  // docs/understand/decisions/store.md#few-fields-have-a-search-index
  /** Those of the fields, all texts, for which a database has an index; each adds about 10 µs to every write. */
  indexed?: readonly string[];
  // docs/understand/decisions/store.md#the-logs-indexes-are-computed-from-the-text-of-the-events
  /**
   * Further text fields, for which a database has an index on the JSON itself. Declaring one does not require existing
   * records to be rewritten. Only for records that are written once, because every change of a record writes this
   * index, too.
   */
  indexedText?: readonly string[];
  // docs/understand/decisions/store.md#secrets-in-the-store-are-sealed
  /**
   * Members that are secrets and are stored sealed (`a.b` is the member b of a, `*` stands for each member or element).
   * No key or field may be computed from one, because keys and fields are stored unsealed.
   */
  sealed?: readonly string[];
  /**
   * Where the collection is kept, if not in the database: `memory` may be lost in a crash (counters that are written on
   * every request); `configuration` is a readable file, rarely written and small enough to be held in memory.
   */
  kept?: 'memory' | 'configuration';
  /** Whether it is read through the configuration's cache (tenant/config.ts), as all of the configuration is. */
  cached?: true;
}

/**
 * Returns whether a collection is read through the configuration's cache: a write to it raises the store's revision.
 */
export function isCached(spec: Pick<CollectionSpec<never>, 'kept' | 'cached'>): boolean {
  return spec.kept === 'configuration' || spec.cached === true;
}
