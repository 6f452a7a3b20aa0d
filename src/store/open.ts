// The embedded store, for one process: configuration in JSON files (lowdb), growing collections in SQLite, and counters
// that may be lost in memory. Its files are in `<dataDir>/store`; `<dataDir>/lock` is locked while it is open.
// docs/understand/decisions/store.md#data-that-grows-is-in-sqlite-inside-node-the-configuration-is-in-readable-json-files
import { access, chmod, mkdir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isCached } from '../records/base/collection-spec.ts';
import type { Stored } from '../records/base/record.ts';
import type { Clock } from '../runtime/clock.ts';
import { directoryMode, syncDirectory } from '../runtime/files.ts';
import { systemRandom } from '../runtime/secrets.ts';
import type { Collection, Snapshot, Store } from './contract.ts';
import { collectionsIn } from './contract.ts';
import { configurationSpecs, createStore, databaseFile, expectStore, holdsStore } from './create.ts';
import { openDeletionClock, purgeRegularly, stateInFile } from './deletion-clock.ts';
import { lockDirectory } from './lock.ts';
import { type Configuration, openConfigurationCollection } from './lowdb/configuration.ts';
import { configurationFile, openConfiguration, temporarySuffix } from './lowdb/lowdb-file.ts';
import { type Commit, createCollection } from './memory/collection.ts';
import { tablesSnapshot } from './memory/memory-snapshot.ts';
import { createTable, expired, remove, type Table } from './memory/table.ts';
import { type AnySpec, collectionSpecs } from './record.ts';
import { countWrites } from './revision.ts';
import { openSealing } from './sealing/open.ts';
import { recordSeal } from './sealing/records.ts';
import { checkDatabase } from './sqlite/sqlite-file.ts';
import { type DatabaseSnapshot, openDatabaseSnapshot } from './sqlite/sqlite-snapshot.ts';
import { openSqlite, type SqliteStore } from './sqlite/sqlite-store.ts';
import type { StoreOptions } from './store-options.ts';
import { FILLING } from './transfer/transfer-parts.ts';

const defaultCheckBytes = 64 << 20;

/**
 * Opens the store in the given database, or else the embedded one. Creates it if there is none.
 * @throws Error when another process has it open, a file in it is missing, damaged or of a newer format, or the
 * database cannot be used.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const store = await openWhole(options);
  if (options.isFilling === true) return store;
  const half = await store.collection('marks').get(FILLING);
  if (half === undefined) return store;
  await store.close();
  throw new Error('the store is half filled: run gatehouse restore or gatehouse migrate again to its end');
}

async function openWhole(options: StoreOptions): Promise<Store> {
  const { databaseUrl, dataDir } = options;
  if (databaseUrl !== undefined) {
    await mkdir(dataDir, { recursive: true, mode: directoryMode });
    // Imported here because the embedded store does not need the PostgreSQL client.
    const { openPostgres } = await import('./postgres/postgres-store.ts');
    return openPostgres({ ...options, url: databaseUrl });
  }
  return openEmbedded(options);
}

async function openEmbedded(options: StoreOptions): Promise<Store> {
  const { dataDir } = options;
  const directory = join(dataDir, 'store');
  if (options.mustBeThere === true) await expectStore(directory);
  await mkdir(dataDir, { recursive: true, mode: directoryMode });
  const unlock = lockDirectory(dataDir);
  try {
    if (!(await holdsStore(directory))) await createStore(directory);
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
  // Checks all files of the configuration before anything is changed.
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
  const { deletion, saveTime } = await openDeletionClock(
    options,
    stateInFile(join(dataDir, 'deletion-time')),
  );
  const database = openSqlite({ file, clock, deletion, log, checked, searchMs, spareThreads, check, sealOf });
  const takeSnapshot = () =>
    snapshotOf(configuration, openDatabaseSnapshot(file, clock() / 1000, sealOf), clock());
  const stopPurging = purgeRegularly({
    purges: [
      ...configuration.map(({ table, commit }) => purger(table, commit, deletion)),
      ...memory.map((table) => purger(table, noCommit, clock)),
      database.purge,
    ],
    saveTime,
    log,
  });
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
        createCollection(table, noCommit, check),
      ]),
      ...database.collections,
    ],
    { database, check, takeSnapshot, close: () => (closing ??= close()) },
  );
}

// Files of the configuration that the release before did not have. The database records which files a store has had, so
// that a lost file is distinguished from one that never existed.

/**
 * Reads every file of the configuration and changes nothing.
 * @returns the collections without a file
 * @throws Error as {@link openConfiguration} does, except for a missing file.
 */
async function checkConfiguration(directory: string): Promise<string[]> {
  const absent: string[] = [];
  for (const [name] of configurationSpecs()) {
    if (await isThere(configurationFile(directory, name))) await openConfiguration(directory, name);
    else absent.push(name);
  }
  return absent;
}

/**
 * Creates empty files for collections that the store never had, and records which files exist.
 * @param database the file of a checked database
 * @throws Error naming a file that the store had and that is missing.
 */
async function addConfiguration(
  directory: string,
  database: string,
  absent: readonly string[],
): Promise<void> {
  const connection = new DatabaseSync(database);
  try {
    const row = connection.prepare("SELECT value FROM meta WHERE name = 'configuration'").get();
    const names = configurationSpecs().map(([name]) => name);
    // A store is created with all of its files; which they are is recorded here, when it is opened.
    const had: string[] = row === undefined ? names : JSON.parse(String(row.value));
    for (const name of absent) {
      const isNew = !had.includes(name);
      const low = await openConfiguration(directory, name, isNew ? new Map() : undefined);
      await low.write();
    }
    if (absent.length > 0) await syncDirectory(directory);
    const all = JSON.stringify(names);
    if (row?.value === all) return;
    connection.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('configuration', ?)").run(all);
  } finally {
    connection.close();
  }
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

// The embedded store, made of the collections in files, in memory and in the SQLite database.

const purgedAtOnce = 500;

/** The commit of collections that are kept in memory only: there is nothing to wait for. */
const noCommit: Commit = () => undefined;

/** Creates empty tables for the collections that are kept in memory only. */
function memoryTables(clock: Clock): Table[] {
  return collectionSpecs()
    .filter(([, spec]) => spec.kept === 'memory')
    .map(([name, spec]) => createTable(name, spec, clock));
}

/** Returns a function that deletes some expired records, and returns whether there may be more. */
const purger = (table: Table, commit: Commit, now: Clock) => async () => {
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
function snapshotOf(
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
 * @param collections by name.
 * @param parts what the methods that concern no single collection call; `check` throws when the store is closed.
 */
function storeOf(
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
