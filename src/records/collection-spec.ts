// What is declared of a collection: its keys, what it is searched by, and where it is kept.

/** A key computed from a record: one value, several, or none. */
export type Key<T> = (record: T) => string | string[] | undefined;

export interface CollectionSpec<T> {
  /** Keys that at most one record may have a given value of. */
  unique: Record<string, Key<T>>;
  /** Keys that any number of records may share. */
  indexes: Record<string, Key<T>>;
  /**
   * Whether the id of a record that is inserted was drawn at random for it, with so many bits that no other record can have
   * it: it need not be looked for.
   */
  hasRandomId?: (record: T) => boolean;
  /**
   * Indexes whose values name other records: each is the id of one of a collection, after a prefix. They may be read
   * together with the record (`getWithNamed` of the contract).
   */
  named?: Record<string, { collection: string; prefix: string }>;
  /**
   * What `list` filters and sorts by, beside the id, and the kind of value it has (`a.b` is b within a). `members` is an
   * object whose members, at any depth, can be filtered by, whatever their kind.
   */
  fields?: Record<string, 'text' | 'number' | 'boolean' | 'members'>;
  /** Those of the fields, all of them texts, that a database has an index for: each costs every write some 10 µs. */
  indexed?: readonly string[];
  /**
   * Further fields, all of them texts, that a database filters by with an index of the records' own text: where one is
   * declared, the records that there are need not be written anew. For records that are written once: each change of one
   * would write the index, too.
   */
  indexedText?: readonly string[];
  /**
   * Members that are secrets and are stored sealed (`a.b` is b within a, `*` each member or element); no key and no
   * field may be made of one, as those are stored open.
   */
  sealed?: readonly string[];
  /**
   * Where it is kept, if not in the database: `memory` need not survive a crash (counters that are written on
   * every request), `configuration` is a readable file, written seldom and small enough to be held in memory.
   */
  kept?: 'memory' | 'configuration';
  /** Of the configuration: whether stores of this format were made before it was there, which then have no file of it. */
  added?: true;
  /** Whether it is read through the configuration's cache (tenant/config.ts), as all of the configuration is. */
  cached?: true;
}

/** Whether a collection is read through the configuration's cache: a write to it raises the store's revision. */
export function isCached(spec: Pick<CollectionSpec<never>, 'kept' | 'cached'>): boolean {
  return spec.kept === 'configuration' || spec.cached === true;
}
