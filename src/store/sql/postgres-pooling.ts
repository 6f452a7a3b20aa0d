// What is between this process and its database, and whether it will do: asked at start, so that no request finds out.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { meaning, processOf, stateOf } from './postgres-pool.ts';

/** What a connection leads to: the database, or a pooler that lends its own for a session or for a transaction. */
export type Pooling = 'direct' | 'session' | 'transaction';

interface Asked {
  settings: pg.ClientConfig;
  /** How many connections this process has at most. */
  connections: number;
  /** Told what an operator should change though it works. */
  warn?(message: string): void;
}

/** SQLSTATE: a prepared statement that is not there, or is there already. */
const unknownStatement = ['26000', '42P05'];

/**
 * Looks where connections lead.
 * @throws Error when the database grants fewer connections than this process has, or the pooler between does not keep
 * prepared statements or transactions; StoreUnavailable when it cannot be reached.
 */
export async function checkPooling({ settings, connections, warn }: Asked): Promise<Pooling> {
  const one = new pg.Client(settings);
  const other = new pg.Client(settings);
  for (const client of [one, other]) client.on('error', () => undefined);
  try {
    await connect(one);
    const pooling = await poolingOf(one, other);
    if (pooling === 'direct') await checkRoom(one, connections);
    if (pooling === 'transaction') {
      await checkStatements(one, other);
      const { rows } = await one.query(`SELECT reset_val FROM pg_settings WHERE name = 'statement_timeout'`);
      if (String(rows[0]?.reset_val) === '0') warn?.(NO_TIMEOUT);
    }
    return pooling;
  } finally {
    await Promise.allSettled([one.end(), other.end()]);
  }
}

/**
 * For what must know that no server uses the database: a pooler's connections stay when the servers have gone, and the
 * database cannot tell the ones from the others.
 * @throws Error when connections lead to a pooler; StoreUnavailable when it cannot be reached.
 */
export async function refusePooler(settings: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(settings);
  client.on('error', () => undefined);
  try {
    await connect(client);
    if (!(await isDirect(client))) throw new Error(POOLER);
  } finally {
    await client.end().catch(() => undefined);
  }
}

const POOLER =
  'there is a pooler before the database, and this command has to see whether a server uses it: give it the address of the database itself in DATABASE_URL, and end the pooler or its connections meanwhile';

const NO_TIMEOUT =
  'the pooler before the database lends its connections for a transaction each, to which no time-outs can be given: ALTER ROLE … SET statement_timeout and lock_timeout';

async function connect(client: pg.Client): Promise<void> {
  await client.connect().catch((error: unknown) => {
    throw meaning(error);
  });
}

/** @param other not connected yet; connected where there is a pooler. */
async function poolingOf(one: pg.Client, other: pg.Client): Promise<Pooling> {
  if (await isDirect(one)) return 'direct';
  // What one connection sets is seen by another where both are lent the same.
  const mark = randomBytes(8).toString('hex');
  await one.query(`SET gatehouse.mark = '${mark}'`);
  await connect(other);
  const seen = await other.query(`SELECT current_setting('gatehouse.mark', true) AS mark`);
  return seen.rows[0]?.mark === mark ? 'transaction' : 'session';
}

/** A pooler names a process of its own for a connection to itself. */
async function isDirect(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
  return Number(rows[0]?.pid) === processOf(client);
}

/** @throws Error when a statement that a connection has prepared is not there in its next transaction. */
async function checkStatements(one: pg.Client, other: pg.Client): Promise<void> {
  const prepared = { name: `gatehouse_${randomBytes(8).toString('hex')}`, text: 'SELECT 1' };
  try {
    await one.query(prepared);
    // While this lasts, the first is lent another connection than it was.
    await other.query('BEGIN');
    await other.query('SELECT 1');
    await one.query(prepared);
    await other.query('ROLLBACK');
  } catch (error) {
    if (unknownStatement.includes(stateOf(error) ?? '')) throw new Error(NO_STATEMENTS, { cause: error });
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${NO_TRANSACTIONS} (${why})`, { cause: error });
  }
}

const NO_STATEMENTS =
  'the pooler before the database lends its connections for a transaction each and does not keep prepared statements: PgBouncer 1.21 or later with max_prepared_statements, or pool_mode = session';
const NO_TRANSACTIONS =
  'the pooler before the database must lend at least two connections, for a transaction or a session each';

/** @throws Error when the database cannot give this process the connections that it has at most. */
async function checkRoom(client: pg.Client, connections: number): Promise<void> {
  const { rows } = await client.query(
    `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true), '0')::int AS room, rolsuper, rolconnlimit, datconnlimit
      FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`,
  );
  const { room, rolsuper, rolconnlimit, datconnlimit } = rows[0] ?? {};
  const own = rolsuper === 't' || rolsuper === true ? [] : [rolconnlimit, datconnlimit];
  // A limit of -1 is none.
  const limits = [room, ...own].map(Number).filter((limit) => limit >= 0);
  const most = Math.min(...limits);
  if (most >= connections) return;
  throw new Error(
    `the database gives ${most} connections, and this process has up to ${connections}: raise max_connections, or lower connections= in DATABASE_URL`,
  );
}
