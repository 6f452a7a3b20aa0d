// The store in a PostgreSQL database, for any number of processes.
import type { KeyObject } from 'node:crypto';
import pg from 'pg';
import { isCached } from '../../records/base/collection-spec.ts';
import type { Stored } from '../../records/base/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import { systemRandom } from '../../runtime/secrets.ts';
import { type Collection, collectionsIn, type Snapshot, type Store, StoreUnavailable } from '../contract.ts';
import { openDeletionClock, purgeRegularly } from '../deletion-clock.ts';
import type { AnyRecord } from '../record.ts';
import { collectionSpecs } from '../record.ts';
import { countWrites } from '../revision.ts';
import { checkOf, keyFile, keyIn, makeKey, RESTORE } from '../sealing/key.ts';
import type { KeySource } from '../sealing/open.ts';
import { opensWith, recordSeal } from '../sealing/records.ts';
import { idText, jsonFromPostgres } from '../sql/postgres-text.ts';
import type { StoreOptions } from '../store-options.ts';
import { writeBatch } from './postgres-batch.ts';
import { createPostgresCollection } from './postgres-collection.ts';
import { makeIndexes } from './postgres-indexes.ts';
import { keyCheck, putKeyCheck } from './postgres-key-check.ts';
import { openPool, type Pool, type Run, stateOf } from './postgres-pool.ts';
import { checkPooling } from './postgres-pooling.ts';
import { createPurge, stateInDatabase } from './postgres-purge.ts';
import { CHANNEL, meta, migrateSchema } from './postgres-schema.ts';
import { postgresStatements } from './postgres-statements.ts';
import { type PostgresTable, recordIn } from './postgres-table.ts';
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
    // Tables that somebody has dropped are no store.
    ready: () => track(async () => void (await pool.run({ text: 'SELECT FROM gatehouse_meta LIMIT 1' }, []))),
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

// Snapshots of a PostgreSQL database, read while others write.

const atOnce = 500;

/** Calls `work` with what is committed now. */
function withSnapshot<T>(
  { pool, tables, clock }: { pool: Pool; tables: ReadonlyMap<string, PostgresTable>; clock: Clock },
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  return pool.alone(async (run) => {
    // No limit on idle time: the reader of the snapshot may wait for a disk or for a network.
    const begin =
      'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0';
    await run({ text: begin }, []);
    const at = clock();
    // The snapshot is taken by the first query of the transaction.
    await run({ text: 'SELECT 1 FROM gatehouse_meta' }, []);
    return work({ at, records: (name) => pages(run, tables.get(name), at) });
  });
}

/** Yields the records of a table that have not expired, in batches. */
async function* pages(
  run: Run,
  table: PostgresTable | undefined,
  at: number,
): AsyncGenerator<readonly AnyRecord[]> {
  if (table === undefined || table.spec.kept === 'memory') return;
  for (let after = ''; ; ) {
    const { rows } = await run(table.statements.page, [after, at / 1000, atOnce]);
    const records = rows.map((row) => recordIn(table, row));
    yield records;
    const last = records.at(-1);
    if (last === undefined || records.length < atOnce) return;
    after = idText(last.id);
  }
}

// The key of a store in a shared database: the setting SECRETS_KEY, or a file in the data directory of each process.
// All processes must have the same key; each checks this when it starts.

/** What a database records of the key that its secrets are sealed with. */
interface SealedDatabase {
  /** The key check value; undefined where there is none. */
  known: string | undefined;
  /** Stored texts of some records with sealed members of each collection; read when there is no check value. */
  texts(): AsyncIterable<readonly [collection: string, members: readonly string[], text: string]>;
  /** Stores the check value of the first key, or of the key that opens what is stored. */
  keep(check: string): Promise<void>;
}

/**
 * Returns the key that a database's secrets are sealed with, creating it if nothing was sealed yet.
 * @throws Error naming the key when it is missing, malformed or wrong, or cannot be created.
 */
async function openSharedSealing(
  { dataDir, given, random }: KeySource,
  { known, texts, keep }: SealedDatabase,
): Promise<KeyObject> {
  const file = keyFile(dataDir);
  const name = given === undefined ? file : 'SECRETS_KEY';
  const key = given ?? (await keyIn(file));
  const isRight =
    known !== undefined ? key !== undefined && checkOf(key) === known : await opensSome(key, texts());
  if (isRight === false) {
    const what = key === undefined ? 'is missing, which' : 'is another key than';
    throw new Error(
      `${name} ${what} the secrets in the database are sealed with: set SECRETS_KEY to the key of the other processes, or ${RESTORE}`,
    );
  }
  const first = key ?? (await makeKey(file, random));
  if (known === undefined) await keep(checkOf(first));
  return first;
}

/** Returns whether a key opens any of the records; undefined if nothing in them is sealed. */
async function opensSome(
  key: KeyObject | undefined,
  texts: ReturnType<SealedDatabase['texts']>,
): Promise<boolean | undefined> {
  let some: boolean | undefined;
  for await (const [collection, members, text] of texts) {
    const { any, all } = opensWith(key, collection, members, text);
    if (any && all) return true;
    if (any) some = false;
  }
  return some;
}

// How this process learns that the configuration was written: directly for its own writes, by NOTIFY for those of
// others, and, where notifications are not delivered (a pooler, a lost connection), by reading the counter.

const everyMilliseconds = 500;

interface Revision {
  current(): number;
  /** Called after this process has written the configuration. */
  raise(): void;
  stop(): Promise<void>;
}

/** Listens until it is stopped; a lost connection is made again with the next check. */
async function watchRevision(pool: Pool): Promise<Revision> {
  let raised = 0;
  let known = Number(await meta(pool.run, 'revision'));
  const { rows } = await pool.run({ text: 'SELECT current_schema()' }, []);
  const schema = rows[0]?.[0] ?? '';
  let client: pg.Client | undefined;
  let asking: Promise<void> | undefined;
  let stopped = false;

  async function listen(): Promise<void> {
    const next = new pg.Client({ ...pool.settings });
    const lose = () => {
      if (client === next) client = undefined;
    };
    next.on('error', lose);
    next.on('end', lose);
    next.on('notification', ({ payload = '', processId }) => {
      const at = payload.lastIndexOf(' ');
      if (payload.slice(0, at) !== schema) return;
      // The number of another session's notification is not trusted, as anyone with access to the database can send one; nor is one
      // of our own that skips a number. Either could hide a change: the next check of the counter then raises the revision again.
      if (!pool.isOwn(processId)) raised += 1;
      else if (Number(payload.slice(at + 1)) === known + 1) known += 1;
    });
    try {
      await next.connect();
      await next.query(`LISTEN ${CHANNEL}`);
    } catch (error) {
      await next.end();
      throw error;
    }
    client = next;
  }

  async function ask(): Promise<void> {
    try {
      if (client === undefined) await listen();
      const count = Number(await meta(pool.run, 'revision'));
      // Also if the number is lower: a standby that has taken over may lack the latest writes.
      if (count !== known) raised += 1;
      known = count;
    } catch {
      // Requests report the fault of the database; the next check tries again.
    }
    asking = undefined;
  }

  await listen();
  const timer = setInterval(() => {
    if (!stopped) asking ??= ask();
  }, everyMilliseconds);
  timer.unref();
  return {
    current: () => raised,
    raise: () => {
      raised += 1;
    },
    async stop() {
      stopped = true;
      clearInterval(timer);
      await asking;
      await client?.end();
    },
  };
}
