// The embedded store, made of the collections in files, in memory and in the SQLite database.

import { isCached } from '../records/collection-spec.ts';
import type { Stored } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import { collectionsIn } from './collection-by-name.ts';
import type { Collection, Snapshot, Store } from './contract.ts';
import { collectionSpecs } from './keys.ts';
import type { Configuration } from './lowdb/configuration.ts';
import type { Commit } from './memory/collection.ts';
import { tablesSnapshot } from './memory/snapshot.ts';
import { createTable, expired, remove, type Table } from './memory/table.ts';
import { countWrites } from './revision.ts';
import type { DatabaseSnapshot } from './sql/sqlite-snapshot.ts';
import type { SqliteStore } from './sql/sqlite-store.ts';

const purgedAtOnce = 500;

/** The commit of collections that are kept in memory only: there is nothing to wait for. */
export const noCommit: Commit = () => undefined;

/** Creates empty tables for the collections that are kept in memory only. */
export function memoryTables(clock: Clock): Table[] {
  return collectionSpecs()
    .filter(([, spec]) => spec.kept === 'memory')
    .map(([name, spec]) => createTable(name, spec, clock));
}

/** Returns a function that deletes some expired records, and returns whether there may be more. */
export const purger = (table: Table, commit: Commit, now: Clock) => async () => {
  const ids = expired(table, purgedAtOnce, now());
  if (ids.length > 0) await commit(remove(table, ids));
  return ids.length === purgedAtOnce;
};

interface Parts {
  database: SqliteStore;
  check(): void;
  /** Takes a snapshot of everything, in one turn of the event loop. */
  takeSnapshot(): Snapshot & { close(): void };
  close(): Promise<void>;
}

/** Combines a copy of the configuration with a snapshot of the database. */
export function snapshotOf(
  configuration: readonly Configuration[],
  database: DatabaseSnapshot,
  at: number,
): Snapshot & { close(): void } {
  const files = tablesSnapshot(
    configuration.map(({ table }) => table),
    at,
  );
  return {
    at,
    records: (name) => (files.has(name) ? files : database).records(name),
    close: database.close,
  };
}

/**
 * Returns the store of some collections.
 * @param collections by name.
 * @param parts what the methods that concern no single collection call; `check` throws when the store is closed.
 */
export function storeOf(
  collections: [string, Collection<Stored>][],
  { database, check, takeSnapshot, close }: Parts,
): Store {
  let revision = 0;
  const count = () => {
    revision += 1;
  };
  const cached = new Set(
    collectionSpecs()
      .filter(([, spec]) => isCached(spec))
      .map(([name]) => name),
  );
  const byName = new Map(
    collections.map(([name, collection]) => [
      name,
      cached.has(name) ? countWrites(collection, count) : collection,
    ]),
  );
  return {
    exclusive: true,
    collection: collectionsIn(byName),
    revision: () => revision,
    async batch(writes) {
      check();
      try {
        await database.batch(writes);
      } finally {
        if (writes.some(({ collection }) => cached.has(collection))) count();
      }
    },
    async compact() {
      check();
      await database.compact();
    },
    async withSnapshot(work) {
      check();
      const snapshot = takeSnapshot();
      try {
        return await work(snapshot);
      } finally {
        snapshot.close();
      }
    },
    async ready() {
      check();
      await database.ready();
    },
    close,
  };
}
