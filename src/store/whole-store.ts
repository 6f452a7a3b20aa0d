// One store of what is kept in files, in memory, and in the database.

import { isCached } from '../records/collection-spec.ts';
import type { Stored } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import { collectionsIn } from './any-collection.ts';
import type { Collection, Moment, Store } from './contract.ts';
import { collectionSpecs } from './keys.ts';
import type { Configuration } from './lowdb/configuration.ts';
import type { Commit } from './memory/collection.ts';
import { tablesMoment } from './memory/moment.ts';
import { createTable, expired, remove, type Table } from './memory/table.ts';
import { type DeletionNotes, deletionClock } from './purge.ts';
import { countWrites } from './revision.ts';
import type { DatabaseMoment } from './sql/sqlite-moment.ts';
import type { SqliteStore } from './sql/sqlite-store.ts';
import type { StoreOptions } from './store-options.ts';

const purgedAtOnce = 500;

/** How often it is noted what time is believed, milliseconds. */
const NOTED = 20_000;

/** The clock by which a store deletes what has expired, and what is left of it to the processes that follow. */
export async function deletionOf(
  {
    clock,
    wallClock = clock,
    elapsed: given,
    isFilling = false,
  }: Pick<StoreOptions, 'clock' | 'wallClock' | 'elapsed' | 'isFilling'>,
  notes: DeletionNotes,
) {
  const elapsed = given ?? (() => performance.now());
  // In one that is filled time stands still.
  if (isFilling) return { deletion: deletionClock({ wall: wallClock, elapsed }) };
  const deletion = deletionClock({ wall: wallClock, elapsed, left: await notes.read() });
  let last = elapsed();
  const note = async () => {
    if (elapsed() - last < NOTED) return;
    last = elapsed();
    await notes.write(deletion.note());
  };
  return { deletion, note };
}

/** What is kept in memory alone is as durable as it gets. */
export const nothing: Commit = () => undefined;

/** The tables of all collections that are kept in memory alone, empty. */
export function memoryTables(clock: Clock): Table[] {
  return collectionSpecs()
    .filter(([, spec]) => spec.kept === 'memory')
    .map(([name, spec]) => createTable(name, spec, clock));
}

/** Deletes some records that have expired. @returns what does so, and says whether there may be more. */
export const purger = (table: Table, commit: Commit, now: Clock) => async () => {
  const ids = expired(table, purgedAtOnce, now());
  if (ids.length > 0) await commit(remove(table, ids));
  return ids.length === purgedAtOnce;
};

interface Parts {
  database: SqliteStore;
  check(): void;
  /** What is there now, all of it in one turn of the event loop. */
  holdMoment(): Moment & { close(): void };
  close(): Promise<void>;
}

/** A copy of the configuration beside the database as it is. */
export function momentOf(
  configuration: readonly Configuration[],
  database: DatabaseMoment,
  at: number,
): Moment & { close(): void } {
  const files = tablesMoment(
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
 * The store of some collections.
 * @param collections by name.
 * @param parts what its methods that are of no single collection call; `check` throws when the store is not to be used.
 */
export function storeOf(
  collections: [string, Collection<Stored>][],
  { database, check, holdMoment, close }: Parts,
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
    async atOneMoment(work) {
      check();
      const moment = holdMoment();
      try {
        return await work(moment);
      } finally {
        moment.close();
      }
    },
    async ready() {
      check();
      await database.ready();
    },
    close,
  };
}
