// The embedded store, for one process: configuration in JSON files (lowdb), what grows in SQLite, and counters that
// need not survive in memory. In `<dataDir>/store`; `<dataDir>/lock` is held while it is open.

import type { KeyObject } from 'node:crypto';
import { chmod, mkdir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { isCached } from '../records/collection-spec.ts';
import type { CollectionName, Records } from '../records/collections.ts';
import type { Stored } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Random, systemRandom } from '../runtime/random.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';
import type { Collection, Moment, Store } from './contract.ts';
import { configurationSpecs, createStore, databaseFile, holdsStore } from './create.ts';
import { directoryMode } from './files.ts';
import { type AnySpec, collectionSpecs } from './keys.ts';
import { lockDirectory } from './lock.ts';
import { addConfiguration, checkConfiguration } from './lowdb/added.ts';
import { type Configuration, openConfigurationCollection } from './lowdb/configuration.ts';
import { temporarySuffix } from './lowdb/file.ts';
import { type Commit, createCollection } from './memory/collection.ts';
import { tablesMoment } from './memory/moment.ts';
import { createTable, expired, remove, type Table } from './memory/table.ts';
import { migrate } from './migrate.ts';
import { MOVING_IN } from './moving/moved.ts';
import { takeOver } from './old/takeover.ts';
import { deletionClock, purgeRegularly } from './purge.ts';
import { countWrites } from './revision.ts';
import { openSealing } from './sealing/open.ts';
import { recordSeal } from './sealing/records.ts';
import { checkDatabase } from './sql/sqlite-file.ts';
import { type DatabaseMoment, openDatabaseMoment } from './sql/sqlite-moment.ts';
import { openSqlite, type SqliteStore } from './sql/sqlite-store.ts';

export interface StoreOptions {
  /** The directory of all that the server keeps; the store's files are in `store` below it. */
  dataDir: string;
  /** What expiry goes by. */
  clock: Clock;
  /** What deletion of what has expired goes by, as far as it is to be believed (`clock` unless said otherwise). */
  wallClock?: Clock | undefined;
  /** Monotonic milliseconds: how long that has been so. */
  elapsed?: (() => number) | undefined;
  log?: Pick<Logger, 'warn' | 'error'>;
  /** The key that the setting SECRETS_KEY gives; otherwise it is in a file, which is made where there is none. */
  secretsKey?: KeyObject | undefined;
  random?: Random;
  /** A PostgreSQL database that the store is in, in place of the embedded one. */
  databaseUrl?: string | undefined;
  /** It is being filled from elsewhere; one that is half filled is not opened otherwise. */
  isFilling?: boolean;
  /** A database of more bytes is read through for damage while it serves, not before (64 MiB unless said otherwise). */
  checkBytes?: number;
  /** How long a search in the embedded store may take, milliseconds (5 s unless said otherwise). */
  searchMs?: number | undefined;
  /** Where the thread comes from that commits; its own unless said otherwise. */
  spareThreads?: SpareThreads | undefined;
}

const purgedAtOnce = 500;
const defaultCheckBytes = 64 << 20;

/**
 * Opens the store: that of a database where one is given, otherwise the embedded one, creating it where there is none
 * and taking over one of the old format.
 * @throws Error when another process has it open, a file in it is missing, damaged or of a newer format, or the database
 * cannot be used.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const store = await openWhole(options);
  if (options.isFilling === true) return store;
  const half = await store.collection('migrations').get(MOVING_IN);
  if (half === undefined) return store;
  await store.close();
  throw new Error('the store is half filled: run gatehouse restore or gatehouse migrate again to its end');
}

async function openWhole(options: StoreOptions): Promise<Store> {
  const { databaseUrl, dataDir } = options;
  if (databaseUrl !== undefined) {
    await mkdir(dataDir, { recursive: true, mode: directoryMode });
    // The embedded store has no use for the client of the other.
    const { openPostgres } = await import('./sql/postgres-store.ts');
    return openPostgres({ ...options, deletion: deletionOf(options), url: databaseUrl });
  }
  const store = await openAsItIs(options);
  try {
    await migrate(store, options.log);
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

async function openAsItIs(options: StoreOptions): Promise<Store> {
  const { dataDir, clock, log } = options;
  const directory = join(dataDir, 'store');
  await mkdir(dataDir, { recursive: true, mode: directoryMode });
  const unlock = lockDirectory(dataDir);
  try {
    await takeOver(directory, clock, log);
    if (!(await holdsStore(directory))) await createStore(directory, new Map());
    await chmod(directory, directoryMode);
    for (const name of await readdir(directory)) {
      if (name.endsWith(temporarySuffix)) await unlink(join(directory, name));
    }
    return await openLocked(directory, unlock, options);
  } catch (error) {
    unlock();
    throw error;
  }
}

async function openLocked(directory: string, unlock: () => void, options: StoreOptions): Promise<Store> {
  const { dataDir, clock, log, checkBytes = defaultCheckBytes, random = systemRandom } = options;
  const file = databaseFile(directory);
  let closing: Promise<void> | undefined;
  const check = () => {
    if (closing !== undefined) throw new Error('the store is closed');
  };
  // Each file of the configuration is whole before anything is changed.
  const absent = await checkConfiguration(directory);
  const { checked } = await checkDatabase(file, checkBytes);
  await addConfiguration(directory, file, absent);
  const key = await openSealing(directory, { dataDir, given: options.secretsKey, random });
  const sealOf = (name: string, spec: AnySpec) => recordSeal(key, name, spec);
  const configuration: Configuration[] = [];
  for (const [name, spec] of configurationSpecs()) {
    const seal = sealOf(name, spec);
    configuration.push(await openConfigurationCollection({ directory, name, spec, clock, check, seal }));
  }
  const memory = memoryTables(clock);
  const { searchMs, spareThreads } = options;
  const deletion = deletionOf(options);
  const database = openSqlite({ file, clock, deletion, log, checked, searchMs, spareThreads, check, sealOf });
  const holdMoment = () => momentOf(configuration, openDatabaseMoment(file, clock() / 1000, sealOf), clock());
  const stopPurging = purgeRegularly(
    [
      ...configuration.map(({ table, commit }) => purger(table, commit, deletion)),
      ...memory.map((table) => purger(table, nothing, clock)),
      database.purge,
    ],
    log,
  );
  const close = async () => {
    await stopPurging();
    for (const one of configuration) await one.close();
    await database.close();
    unlock();
  };
  return storeOf(
    [
      ...configuration.map(({ table, collection }): [string, Collection<Stored>] => [table.name, collection]),
      ...memory.map((table): [string, Collection<Stored>] => [
        table.name,
        createCollection(table, nothing, check),
      ]),
      ...database.collections,
    ],
    { database, check, holdMoment, close: () => (closing ??= close()) },
  );
}

const deletionOf = ({ clock, wallClock = clock, elapsed }: StoreOptions) =>
  deletionClock({ wall: wallClock, elapsed });

/** What is kept in memory alone is as durable as it gets. */
const nothing: Commit = () => undefined;

function memoryTables(clock: Clock): Table[] {
  return collectionSpecs()
    .filter(([, spec]) => spec.kept === 'memory')
    .map(([name, spec]) => createTable(name, spec, clock));
}

/** Deletes some records that have expired. */
const purger = (table: Table, commit: Commit, now: Clock) => async () => {
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
function momentOf(
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

function storeOf(
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
    collection: <N extends CollectionName>(name: N) => {
      // Below the contract all records are alike; a collection holds only what came in as its own.
      return byName.get(name) as unknown as Collection<Records[N]>;
    },
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
