// The tables in PostgreSQL, and how they come to their present form: numbered changes, forward only, each in a
// transaction, by whichever process takes the lock first. What collections.ts declares beyond them is added as it comes.
import { isCached } from '../../records/collection-spec.ts';
import { type AnySpec, collectionSpecs } from '../keys.ts';
import { postgresDialect } from './dialect.ts';
import type { Pool, Run } from './postgres-pool.ts';
import { keyTables } from './postgres-statements.ts';
import { fieldColumn, fieldIndex, removal } from './schema.ts';

/** The channel on which a write of the configuration is told. */
export const CHANNEL = 'gatehouse_configuration';

const { text } = postgresDialect;

/** One step from a schema to the next; its number is its place, from 1 on. */
type Version = readonly string[];

const versions: readonly Version[] = [
  [
    `INSERT INTO gatehouse_meta (name, value) VALUES ('revision', '0')`,
    // Whoever writes the configuration tells all processes, when it commits; the count is for those that hear nothing.
    `CREATE FUNCTION gatehouse_configuration_written() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE revision text;
      BEGIN
        UPDATE gatehouse_meta SET value = (value::bigint + 1)::text WHERE name = 'revision' RETURNING value INTO revision;
        PERFORM pg_notify('${CHANNEL}', current_schema() || ' ' || revision);
        RETURN NULL;
      END $$`,
  ],
];

/** What creates the tables of a collection that are not there yet. */
function creation(name: string, spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  const fields = spec.indexed ?? [];
  const columns = [
    `id ${text} PRIMARY KEY`,
    // JSON as it was written; its members keep their order, as in the other engines.
    'data json NOT NULL',
    'expires_at double precision',
    ...fields.map((path) => `${fieldColumn(path)} ${text}`),
    ...(unique ? [`uniques text[] COLLATE "C" NOT NULL`] : []),
    ...(index ? [`indexes text[] COLLATE "C" NOT NULL`] : []),
  ];
  const kind = spec.kept === 'memory' ? 'UNLOGGED ' : '';
  const keys = (table: string, primary: string) =>
    `CREATE ${kind}TABLE IF NOT EXISTS "${table}" (key ${text}, value ${text}, id ${text} NOT NULL, PRIMARY KEY (${primary}))`;
  return [
    `CREATE ${kind}TABLE IF NOT EXISTS "${name}" (${columns.join(', ')})`,
    `CREATE INDEX IF NOT EXISTS "${name}_expiry" ON "${name}" (expires_at) WHERE expires_at IS NOT NULL`,
    // Two, because those without the field come last in both directions.
    ...fields.flatMap((path) => [
      `CREATE INDEX IF NOT EXISTS "${fieldIndex(name, path)}" ON "${name}" (${fieldColumn(path)}, id)`,
      `CREATE INDEX IF NOT EXISTS "${fieldIndex(name, path)}_descending" ON "${name}" (${fieldColumn(path)} DESC NULLS LAST, id)`,
    ]),
    ...(unique ? [keys(`${name}_unique`, 'key, value')] : []),
    ...(index ? [keys(`${name}_index`, 'key, value, id')] : []),
    ...(isCached(spec)
      ? [
          `CREATE OR REPLACE TRIGGER configuration_written AFTER INSERT OR UPDATE OR DELETE ON "${name}" FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_configuration_written()`,
        ]
      : []),
  ];
}

const declaration = () => [
  ...removal(),
  ...collectionSpecs().flatMap(([name, spec]) => creation(name, spec)),
];

/**
 * Brings the schema to its present form.
 * @param prepare what else is done once for all processes that start together, with the schema in its present form
 * @throws Error when a newer release has changed it, or the database is another program's.
 */
export async function migrateSchema(pool: Pool, prepare: (run: Run) => Promise<void>): Promise<void> {
  await pool.alone(async (run) => {
    await run({ text: `SELECT pg_advisory_lock(hashtext('gatehouse ' || current_schema()))` }, []);
    const version = await currentVersion(run);
    if (version > versions.length) {
      throw new Error(
        `the database has schema ${version}, and ${versions.length} is the newest that is known here: a newer release of Gatehouse has changed it`,
      );
    }
    for (const [n, statements] of versions.entries()) {
      if (n >= version) await inTransaction(run, [...statements, setMeta('version', `'${n + 1}'`)]);
    }
    const declared = declaration();
    const text = JSON.stringify(declared);
    if ((await meta(run, 'declaration')) !== text) {
      await inTransaction(run, declared);
      await run({ text: setMeta('declaration', '$1') }, [text]);
    }
    await prepare(run);
  });
}

async function currentVersion(run: Run): Promise<number> {
  const { rows } = await run({ text: `SELECT to_regclass('gatehouse_meta')` }, []);
  if (rows[0]?.[0] === null) {
    const { rows: others } = await run({ text: `SELECT to_regclass('users'), to_regclass('clients')` }, []);
    if (others[0]?.some((one) => one !== null)) {
      throw new Error('the database has tables of another program: give Gatehouse one of its own');
    }
    await run({ text: `CREATE TABLE gatehouse_meta (name ${text} PRIMARY KEY, value text NOT NULL)` }, []);
  }
  return Number((await meta(run, 'version')) ?? 0);
}

/** What the store keeps of itself under a name. */
export async function meta(run: Run, name: string): Promise<string | undefined> {
  const { rows } = await run({ text: 'SELECT value FROM gatehouse_meta WHERE name = $1' }, [name]);
  return rows[0]?.[0] ?? undefined;
}

const setMeta = (name: string, value: string) =>
  `INSERT INTO gatehouse_meta (name, value) VALUES ('${name}', ${value}) ON CONFLICT (name) DO UPDATE SET value = excluded.value`;

async function inTransaction(run: Run, statements: readonly string[]): Promise<void> {
  await run({ text: 'BEGIN' }, []);
  try {
    for (const statement of statements) await run({ text: statement }, []);
    await run({ text: 'COMMIT' }, []);
  } catch (error) {
    await run({ text: 'ROLLBACK' }, []);
    throw error;
  }
}
