// Checks at start what is between this process and its database, and whether it supports what the store needs.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { meaning, processOf, stateOf } from './postgres-pool.ts';

/** What a connection reaches: the database, or a pooler that lends its connections per session or per transaction. */
export type Pooling = 'direct' | 'session' | 'transaction';

interface Asked {
  settings: pg.ClientConfig;
  connections: number;
  /** Called with what the operator should change although it works. */
  warn?(message: string): void;
}

/** SQLSTATE: a prepared statement does not exist, or exists already. */
const unknownStatement = ['26000', '42P05'];

/**
 * Finds out what connections reach.
 * @throws Error when the database grants fewer connections than this process may use, or a pooler does not keep
 * prepared statements or transactions; StoreUnavailable when it cannot be reached.
 */
export async function checkPooling({ settings, connections, warn }: Asked): Promise<Pooling> {
  const client = new pg.Client(settings);
  const secondClient = new pg.Client(settings);
  for (const each of [client, secondClient]) each.on('error', () => undefined);
  try {
    await connect(client);
    const pooling = await poolingOf(client, secondClient);
    if (pooling === 'direct') await checkConnectionLimit(client, connections);
    if (pooling === 'transaction') {
      await checkStatements(client, secondClient);
      const { rows } = await client.query(
        `SELECT reset_val FROM pg_settings WHERE name = 'statement_timeout'`,
      );
      if (String(rows[0]?.reset_val) === '0') warn?.(NO_TIMEOUT);
    }
    return pooling;
  } finally {
    await Promise.allSettled([client.end(), secondClient.end()]);
  }
}

/**
 * For commands that must know that no server uses the database: a pooler keeps its connections after the servers have
 * ended, and the database cannot tell whose they are.
 * @throws Error when connections reach a pooler; StoreUnavailable when it cannot be reached.
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

/** @param other not connected yet; it is connected if there is a pooler. */
async function poolingOf(one: pg.Client, other: pg.Client): Promise<Pooling> {
  if (await isDirect(one)) return 'direct';
  // With a pooler that lends per transaction, both clients get the same connection and see each other's settings.
  const mark = randomBytes(8).toString('hex');
  await one.query(`SET gatehouse.mark = '${mark}'`);
  await connect(other);
  const seen = await other.query(`SELECT current_setting('gatehouse.mark', true) AS mark`);
  return seen.rows[0]?.mark === mark ? 'transaction' : 'session';
}

/** A pooler reports a process id of its own when a client connects. */
async function isDirect(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
  return Number(rows[0]?.pid) === processOf(client);
}

/** @throws Error when a prepared statement is missing in the connection's next transaction. */
async function checkStatements(one: pg.Client, other: pg.Client): Promise<void> {
  const prepared = { name: `gatehouse_${randomBytes(8).toString('hex')}`, text: 'SELECT 1' };
  try {
    await one.query(prepared);
    // While this transaction is open, the first client gets another connection than before.
    await other.query('BEGIN');
    await other.query('SELECT 1');
    await one.query(prepared);
    await other.query('ROLLBACK');
  } catch (error) {
    if (unknownStatement.includes(stateOf(error) ?? '')) throw new Error(NO_STATEMENTS, { cause: error });
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${NO_TRANSACTIONS} (${reason})`, { cause: error });
  }
}

const NO_STATEMENTS =
  'the pooler before the database lends its connections for a transaction each and does not keep prepared statements: PgBouncer 1.21 or later with max_prepared_statements, or pool_mode = session';
const NO_TRANSACTIONS =
  'the pooler before the database must lend at least two connections, for a transaction or a session each';

/** @throws Error when the database cannot grant the maximum number of connections of this process. */
async function checkConnectionLimit(client: pg.Client, connections: number): Promise<void> {
  const { rows } = await client.query(
    `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true), '0')::int AS room, rolsuper, rolconnlimit, datconnlimit
      FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`,
  );
  const { room, rolsuper, rolconnlimit, datconnlimit } = rows[0] ?? {};
  const roleLimits = rolsuper === 't' || rolsuper === true ? [] : [rolconnlimit, datconnlimit];
  // -1 means no limit.
  const limits = [room, ...roleLimits].map(Number).filter((limit) => limit >= 0);
  const maxConnections = Math.min(...limits);
  if (maxConnections >= connections) return;
  throw new Error(
    `the database gives ${maxConnections} connections, and this process has up to ${connections}: raise max_connections, or lower connections= in DATABASE_URL`,
  );
}
