// The embedded store, for one process: configuration in JSON files (lowdb), growing collections in SQLite, and counters
// that may be lost in memory. Its files are in `<dataDir>/store`; `<dataDir>/lock` is locked while it is open.
import { chmod, mkdir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { migrations } from '../records/migrations.ts';
import type { Stored } from '../records/record.ts';
import { systemRandom } from '../runtime/random.ts';
import type { Collection, Store } from './contract.ts';
import { configurationSpecs, createStore, databaseFile, expectStore, holdsStore } from './create.ts';
import { openDeletionClock, stateInFile } from './deletion-clock.ts';
import { memoryTables, noCommit, purger, snapshotOf, storeOf } from './embedded-store.ts';
import { directoryMode } from './files.ts';
import type { AnySpec } from './keys.ts';
import { convertLegacyStore } from './legacy/convert.ts';
import { lockDirectory } from './lock.ts';
import { addConfiguration, checkConfiguration } from './lowdb/added.ts';
import { type Configuration, openConfigurationCollection } from './lowdb/configuration.ts';
import { temporarySuffix } from './lowdb/file.ts';
import { createCollection } from './memory/collection.ts';
import { migrate } from './migrate.ts';
import { purgeRegularly } from './purge.ts';
import { openSealing } from './sealing/open.ts';
import { recordSeal } from './sealing/records.ts';
import { checkDatabase } from './sql/sqlite-file.ts';
import { openDatabaseSnapshot } from './sql/sqlite-snapshot.ts';
import { openSqlite } from './sql/sqlite-store.ts';
import type { StoreOptions } from './store-options.ts';
import { FILLING } from './transfer/parts.ts';

const defaultCheckBytes = 64 << 20;

/**
 * Opens the store in the given database, or else the embedded one. Creates it if there is none, and converts one of the
 * legacy format.
 * @throws Error when another process has it open, a file in it is missing, damaged or of a newer format, or the
 * database cannot be used.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const store = await openWhole(options);
  if (options.isFilling === true) return store;
  const half = await store.collection('migrations').get(FILLING);
  if (half === undefined) return store;
  await store.close();
  throw new Error('the store is half filled: run gatehouse restore or gatehouse migrate again to its end');
}

async function openWhole(options: StoreOptions): Promise<Store> {
  const { databaseUrl, dataDir } = options;
  if (databaseUrl !== undefined) {
    await mkdir(dataDir, { recursive: true, mode: directoryMode });
    // Imported here because the embedded store does not need the PostgreSQL client.
    const { openPostgres } = await import('./sql/postgres-store.ts');
    const inDatabase = migrations.filter((one) => one.isForPostgres);
    return migrated(await openPostgres({ ...options, url: databaseUrl }), options, inDatabase);
  }
  return migrated(await openAsItIs(options), options);
}

async function migrated(
  store: Store,
  { log }: StoreOptions,
  which?: Parameters<typeof migrate>[2],
): Promise<Store> {
  try {
    await migrate(store, log, which);
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

async function openAsItIs(options: StoreOptions): Promise<Store> {
  const { dataDir, clock, log } = options;
  const directory = join(dataDir, 'store');
  if (options.mustBeThere === true) await expectStore(directory);
  await mkdir(dataDir, { recursive: true, mode: directoryMode });
  const unlock = lockDirectory(dataDir);
  try {
    await convertLegacyStore(directory, clock, log);
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
