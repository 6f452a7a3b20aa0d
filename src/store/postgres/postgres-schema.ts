// Brings the tables in PostgreSQL to their present form, by whichever process gets the lock: what every schema has, then
// what collections.ts declares (postgres-declared.ts).
import type { KeyObject } from 'node:crypto';
import type { Logger } from 'pino';
import { StoreAbsent } from '../contract.ts';
import { collectionSpecs } from '../record.ts';
import { postgresDialect } from '../sql/dialect.ts';
import { addDeclared, creation, type Declaration, declaration, refuseNewer } from './postgres-declared.ts';
import { missingIndexes } from './postgres-indexes.ts';
import { inLongTransaction } from './postgres-long-transaction.ts';
import type { Pool, Run } from './postgres-pool.ts';

/** The channel for notifications of writes to the configuration. */
export const CHANNEL = 'gatehouse_configuration';

const { text } = postgresDialect;

/** The version of what every schema has beside the declared collections; a release that changes this raises it. */
const VERSION = 1;

const CREATION = [
  `INSERT INTO gatehouse_meta (name, value) VALUES ('revision', '0')`,
  // A write to the configuration notifies all processes when it commits; the counter is for those that receive no
  // notifications.
  `CREATE FUNCTION gatehouse_configuration_written() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE revision text;
    BEGIN
      UPDATE gatehouse_meta SET value = (value::bigint + 1)::text WHERE name = 'revision' RETURNING value INTO revision;
      PERFORM pg_notify('${CHANNEL}', current_schema() || ' ' || revision);
      RETURN NULL;
    END $$`,
];

interface Migrating {
  /** Throw StoreAbsent instead of creating tables in a database without them. */
  mustBeThere?: boolean | undefined;
  /** Returns the key of the secrets in the store, after verifying it by the check value in the database. */
  openKey(run: Run): Promise<KeyObject>;
  log?: Pick<Logger, 'warn'>;
}

/**
 * @returns the key of the secrets, and the indexes to create while the server runs
 * @throws Error when a newer release has changed the schema, the database belongs to another program, or the key is
 *   wrong.
 */
export async function migrateSchema(pool: Pool, { mustBeThere = false, openKey, log }: Migrating) {
  return oneAtATime(pool, async (run) => {
    const version = await currentVersion(run, mustBeThere);
    if (version > VERSION) {
      throw new Error(
        `the database has schema ${version}, and ${VERSION} is the newest that is known here: a newer release of Gatehouse has changed it`,
      );
    }
    const noted = await meta(run, 'declared');
    const known: Declaration = noted === undefined ? {} : JSON.parse(noted);
    refuseNewer(known);
    if (version < VERSION) {
      await inLongTransaction(run, async () => {
        for (const statement of CREATION) await run({ text: statement }, []);
        await run({ text: setMeta }, ['version', String(VERSION)]);
      });
    }
    const [, checks] = collectionSpecs().find(([name]) => name === 'keyChecks') ?? [];
    if (checks !== undefined) {
      for (const statement of creation('keyChecks', checks)) await run({ text: statement }, []);
    }
    const key = await openKey(run);
    const present = JSON.stringify(declaration());
    if (noted !== present) {
      await inLongTransaction(run, async () => {
        const onRewrite = (collection: string) =>
          log?.warn({ collection }, 'the records of a collection are brought to their present form, once');
        await addDeclared(run, known, { key, onRewrite });
        await run({ text: setMeta }, ['declared', present]);
      });
    }
    return { key, missing: await missingIndexes(run) };
  });
}

/** Works while no other process does. The lock belongs to a transaction, which a pooler keeps on one connection. */
function oneAtATime<T>(pool: Pool, work: (run: Run) => Promise<T>): Promise<T> {
  return pool.alone((lock) =>
    inLongTransaction(lock, async () => {
      await lockStart(lock);
      return pool.alone(work);
    }),
  );
}

/** Blocks other processes that start, until the transaction ends. @param run of a transaction without time limits */
export async function lockStart(run: Run): Promise<void> {
  await run({ text: `SELECT pg_advisory_xact_lock(hashtext('gatehouse ' || current_schema()))` }, []);
}

async function currentVersion(run: Run, mustBeThere: boolean): Promise<number> {
  const { rows } = await run({ text: `SELECT to_regclass('gatehouse_meta')` }, []);
  if (rows[0]?.[0] === null) {
    if (mustBeThere) throw new StoreAbsent('the database');
    const { rows: others } = await run({ text: `SELECT to_regclass('users'), to_regclass('clients')` }, []);
    if (others[0]?.some((one) => one !== null)) {
      throw new Error('the database has tables of another program: give Gatehouse one of its own');
    }
    await run({ text: `CREATE TABLE gatehouse_meta (name ${text} PRIMARY KEY, value text NOT NULL)` }, []);
  }
  return Number((await meta(run, 'version')) ?? 0);
}

/** Returns a value that the store records about itself, by name. */
export async function meta(run: Run, name: string): Promise<string | undefined> {
  const { rows } = await run({ text: 'SELECT value FROM gatehouse_meta WHERE name = $1' }, [name]);
  return rows[0]?.[0] ?? undefined;
}

/** Stores a value under a name. */
export const setMeta =
  'INSERT INTO gatehouse_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value';
