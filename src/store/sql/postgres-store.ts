// The store in a PostgreSQL database, for any number of processes.

import type { KeyObject } from 'node:crypto';
import { isCached } from '../../records/collection-spec.ts';
import type { Stored } from '../../records/record.ts';
import { systemRandom } from '../../runtime/random.ts';
import { collectionsIn } from '../collection-by-name.ts';
import { type Collection, type Store, StoreUnavailable } from '../contract.ts';
import { openDeletionClock } from '../deletion-clock.ts';
import { collectionSpecs } from '../keys.ts';
import { purgeRegularly } from '../purge.ts';
import { countWrites } from '../revision.ts';
import { recordSeal } from '../sealing/records.ts';
import { openSharedSealing } from '../sealing/shared.ts';
import type { StoreOptions } from '../store-options.ts';
import { writeBatch } from './postgres-batch.ts';
import { createPostgresCollection } from './postgres-collection.ts';
import { makeIndexes } from './postgres-indexes.ts';
import { keyCheck, putKeyCheck } from './postgres-key-check.ts';
import { openPool, type Pool, type Run, stateOf } from './postgres-pool.ts';
import { checkPooling } from './postgres-pooling.ts';
import { createPurge, stateInDatabase } from './postgres-purge.ts';
import { watchRevision } from './postgres-revision.ts';
import { migrateSchema } from './postgres-schema.ts';
import { withSnapshot } from './postgres-snapshot.ts';
import { postgresStatements } from './postgres-statements.ts';
import type { PostgresTable } from './postgres-table.ts';
import { jsonFromPostgres } from './postgres-text.ts';
import { databaseTime, NOW } from './postgres-time.ts';

/** `dataDir` is only used for the file of the secrets' key, when `secretsKey` is not given. */
interface PostgresOptions extends Omit<StoreOptions, 'databaseUrl'> {
  /** `postgres://user:password@host:port/database?sslmode=verify-full`. */
  url: string;
}

/** SQLSTATE: read_only_sql_transaction. */
const readOnly = '25006';
const READ_ONLY =
  'the database takes no writes: it is a standby, or made read-only (default_transaction_read_only). Give DATABASE_URL the address of the primary; a standby is backed up by pg_dump or pg_basebackup';

/**
 * Opens the store in a database, creating its tables if there are none.
 * @throws Error when the database cannot be reached, is read-only or of a newer release, or its secrets are sealed with
 * another key.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, log, mustBeThere } = options;
  const pool = openPool(url, (err) => log?.warn({ err }, 'a connection to the database was lost'));
  try {
    const warn = (message: string) => log?.warn(message);
    const pooling = await checkPooling({ settings: pool.settings, connections: pool.most, warn });
    const openKey = (run: Run) => sealingKey(run, options);
    const { key, missing } = await migrateSchema(pool, { mustBeThere, openKey, ...(log && { log }) });
    const tables = await openTables(pool, key, options);
    const stopMaking = makeIndexes(pool, { missing, pooling, log });
    return { ...tables, close: () => stopMaking().finally(tables.close) };
  } catch (error) {
    await pool.close();
    // At start there is no client to answer: report the database's own error to the operator.
    if (!(error instanceof StoreUnavailable)) throw error;
    throw stateOf(error.database) === readOnly ? new Error(READ_ONLY, { cause: error }) : error.cause;
  }
}

async function sealingKey(run: Run, { dataDir, secretsKey, random = systemRandom }: PostgresOptions) {
  return openSharedSealing(
    { dataDir, given: secretsKey, random },
    {
      known: await keyCheck(run),
      texts: () => sealedTexts(run),
      keep: (value) => putKeyCheck(run, value),
    },
  );
}

/** Yields the stored texts of some records of each collection with sealed members. */
async function* sealedTexts(run: Run): AsyncGenerator<[string, readonly string[], string]> {
  for (const [name, { sealed }] of collectionSpecs()) {
    if (sealed === undefined) continue;
    const { rows: there } = await run({ text: 'SELECT to_regclass($1)' }, [`"${name}"`]);
    if (there[0]?.[0] === null) continue;
    const { rows } = await run({ text: `SELECT data FROM "${name}" LIMIT 100` }, []);
    for (const [data] of rows) yield [name, sealed, jsonFromPostgres(data ?? '')];
  }
}

async function openTables(pool: Pool, key: KeyObject, options: PostgresOptions): Promise<Store> {
  const { clock, wallClock = clock, machineClock, log } = options;
  const time = databaseTime({ wallClock, machineClock, log });
  const asked = performance.now();
  const { rows } = await pool.read({ text: `SELECT ${NOW}` }, []);
  time.heard(Number(rows[0]?.[0]) * 1000, asked);
  const tables = new Map(
    collectionSpecs().map(([name, spec]): [string, PostgresTable] => [
      name,
      { name, spec, clock, seal: recordSeal(key, name, spec), statements: postgresStatements(name, spec) },
    ]),
  );
  const { deletion, saveTime } = await openDeletionClock(options, stateInDatabase(pool, time.clock));
  const revision = await watchRevision(pool);
  const underWay = trackWork();
  const { track } = underWay;
  const collections = new Map(
    [...tables].map(([name, table]): [string, Collection<Stored>] => {
      const collection = createPostgresCollection({
        table,
        pool,
        track,
        tableOf: (other) => tables.get(other),
      });
      return [name, isCached(table.spec) ? countWrites(collection, revision.raise) : collection];
    }),
  );
  const purges = [createPurge(pool, [...tables.values()], { deletion, time })];
  const stopPurging = purgeRegularly({ purges, saveTime, log });
  let closing: Promise<void> | undefined;
  const close = async () => {
    await underWay.end();
    await stopPurging();
    await revision.stop();
    await pool.close();
  };
  return {
    sharedClock: time.clock,
    collection: collectionsIn(collections),
    revision: revision.current,
    batch: (writes) =>
      track(async () => {
        try {
          await writeBatch({ pool, tables, collections }, writes);
        } finally {
          if (writes.some(({ collection }) => isCached(tables.get(collection)?.spec ?? {}))) revision.raise();
        }
      }),
    compact: () =>
      track(() =>
        pool.alone(async (run) => {
          for (const name of tables.keys()) await run({ text: `VACUUM FULL "${name}"` }, []);
        }),
      ),
    withSnapshot: (work) => track(() => withSnapshot({ pool, tables, clock }, work)),
    ready: () => track(async () => void (await pool.run({ text: 'SELECT 1' }, []))),
    close: () => (closing ??= close()),
  };
}

/** Tracks the operations under way, so that closing waits for them and no further one begins. */
function trackWork() {
  const underWay = new Set<Promise<unknown>>();
  let ended = false;
  return {
    async track<R>(work: () => Promise<R>): Promise<R> {
      if (ended) throw new Error('the store is closed');
      const promise = work();
      underWay.add(promise);
      try {
        return await promise;
      } finally {
        underWay.delete(promise);
      }
    },
    async end(): Promise<void> {
      ended = true;
      await Promise.allSettled([...underWay]);
    },
  };
}
