// Connections to PostgreSQL. All waiting has an end: for a connection, for the database's answer, for a lock; and only
// so many wait. What fails because of the database's state, and not of what was asked, is a StoreUnavailable.
import pg from 'pg';
import { StoreUnavailable } from '../contract.ts';
import { toPostgres } from './postgres-text.ts';

/** A parameter; a list is an array of texts. */
export type Parameter = string | number | null | readonly string[];

/** A statement; one with a name is prepared once in each connection. */
export interface PreparedStatement {
  name?: string;
  text: string;
}

/** What a statement gave: its rows as texts, and how many it made or changed. */
export interface Outcome {
  rows: (string | null)[][];
  count: number;
}

/** Runs a statement: by any connection, or within one transaction. */
export type Run = (statement: PreparedStatement, parameters: readonly Parameter[]) => Promise<Outcome>;

export interface Pool {
  /** Runs one statement, a transaction of its own. @throws StoreUnavailable; DatabaseError as {@link stateOf} tells. */
  run: Run;
  /** Runs statements as one transaction; once more where the database ended it because of another. */
  transaction<T>(work: (run: Run) => Promise<T>): Promise<T>;
  /** A connection of its own, without a limit of time, for what is done at start and by commands. */
  alone<T>(work: (run: Run) => Promise<T>): Promise<T>;
  /** Settings of a connection that is not one of these. */
  settings: pg.ClientConfig;
  /** The process of the database that serves a connection of the pool. */
  isOwn(processId: number): boolean;
  close(): Promise<void>;
}

/**
 * What nobody knows the outcome of is not done again; this was certainly not done: a serialization failure, a deadlock,
 * and in a transaction a unique key that another took since it was looked for.
 */
const retried = ['40001', '40P01'];
const uniqueViolation = '23505';
const mostTries = 8;
const acquireMilliseconds = 5000;
const statementMilliseconds = 10_000;
const lockMilliseconds = 5000;
/** Where the way to the database is cut, nobody says so. */
const answerMilliseconds = statementMilliseconds + 5000;
const connections = 10;
/** Those beyond are refused at once: what waits takes memory, and would wait in vain. */
const mostWaiting = 10_000;

/** SQLSTATE of what a database refused; undefined where it was none. */
export function stateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/**
 * What each connection says first. Statements look few rows up by an index; a plan for the tables as they were, small or
 * empty, must not read them through when they have grown.
 */
export function greeting({ searchParams }: URL): string {
  const limits = {
    statement_timeout: statementMilliseconds,
    lock_timeout: lockMilliseconds,
    idle_in_transaction_session_timeout: statementMilliseconds,
  };
  const given = Object.entries(limits).map(([name, value]) => [
    name,
    /^\d+$/.test(searchParams.get(name) ?? '') ? searchParams.get(name) : value,
  ]);
  const planning = [
    ['enable_hashjoin', 'off'],
    ['enable_mergejoin', 'off'],
    ['random_page_cost', 1.1],
  ];
  return [...given, ...planning].map(([name, value]) => `SET ${name} = ${value}`).join('; ');
}

/** The settings of a connection. @throws Error when a file that the address names cannot be read. */
function connectionSettings(url: string): pg.ClientConfig {
  const address = new URL(url);
  // Whoever asks for TLS gets a server that proves its name.
  if (['require', 'verify-ca'].includes(address.searchParams.get('sslmode') ?? '')) {
    address.searchParams.set('sslmode', 'verify-full');
  }
  return {
    connectionString: withoutLimits(address).href,
    application_name: 'gatehouse',
    connectionTimeoutMillis: acquireMilliseconds,
    query_timeout: answerMilliseconds,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // All values come as texts: JSON is parsed once, by the record's own reader.
    types: { getTypeParser: () => (value: unknown) => value } as pg.CustomTypesConfig,
  };
}

/** They are said once connected (see {@link greeting}): poolers refuse them before. */
function withoutLimits(address: URL): URL {
  for (const name of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) {
    address.searchParams.delete(name);
  }
  return address;
}

/** Opens a pool; connections are made when they are needed. */
export function openPool(url: string, onError: (error: Error) => void): Pool {
  const settings = connectionSettings(url);
  const hello = greeting(new URL(url));
  const pool = new pg.Pool({
    ...settings,
    max: connections,
    idleTimeoutMillis: 30_000,
    onConnect: async (client) => void (await client.query(hello)),
  });
  const processes = new Set<number>();
  pool.on('error', onError);
  pool.on('connect', (client) => {
    processes.add(processOf(client));
    // Whoever works with one that breaks is told by what they asked for; unheard it would end the process.
    client.on('error', () => undefined);
  });
  pool.on('remove', (client) => void processes.delete(processOf(client)));

  async function connected<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    if (pool.waitingCount >= mostWaiting)
      throw new StoreUnavailable('too many requests wait for the database');
    let client: pg.PoolClient;
    try {
      client = await pool.connect();
    } catch (error) {
      throw meaning(error);
    }
    let broken = false;
    try {
      return await work(client);
    } catch (error) {
      broken = error instanceof StoreUnavailable;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  return {
    settings,
    isOwn: (processId) => processes.has(processId),
    run: (statement, parameters) =>
      retrying(retried, () => connected((client) => ask(client, statement, parameters))),
    transaction: (work) =>
      retrying([...retried, uniqueViolation], () => connected((client) => withinTransaction(client, work))),
    async alone(work) {
      const client = new pg.Client({ ...settings, query_timeout: 0 });
      client.on('error', () => undefined);
      await client.connect().catch((error) => {
        throw meaning(error);
      });
      try {
        return await work((statement, parameters) => ask(client, statement, parameters));
      } finally {
        await client.end();
      }
    },
    close: () => pool.end(),
  };
}

const processOf = (client: pg.PoolClient) => Number((client as unknown as { processID: number }).processID);

async function ask(
  client: pg.ClientBase,
  { name, text }: PreparedStatement,
  parameters: readonly Parameter[],
): Promise<Outcome> {
  try {
    const { rows, rowCount } = await client.query<(string | null)[]>({
      ...(name !== undefined && { name }),
      text,
      values: parameters.map(written),
      rowMode: 'array',
    });
    return { rows, count: rowCount ?? 0 };
  } catch (error) {
    throw meaning(error);
  }
}

function written(parameter: Parameter): unknown {
  if (typeof parameter === 'string') return toPostgres(parameter);
  return Array.isArray(parameter) ? parameter.map(toPostgres) : parameter;
}

async function withinTransaction<T>(client: pg.ClientBase, work: (run: Run) => Promise<T>): Promise<T> {
  const run: Run = (statement, parameters) => ask(client, statement, parameters);
  await run({ text: 'BEGIN' }, []);
  try {
    const result = await work(run);
    await run({ text: 'COMMIT' }, []);
    return result;
  } catch (error) {
    // A connection that failed is given up, and its transaction with it.
    if (!(error instanceof StoreUnavailable)) await run({ text: 'ROLLBACK' }, []);
    throw error;
  }
}

/** Tries again what the database ended because of another transaction, a bounded number of times. */
async function retrying<T>(states: readonly string[], work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!states.includes(stateOf(error) ?? '')) throw error;
      if (tries === mostTries) throw new StoreUnavailable('others changed the same records at once', error);
    }
  }
}

/** Connections, resources, the operator's doing (a time-out among them); a standby, a lock that was not given. */
const unfit = /^(?:08|53|57|58|28)|^(?:25006|55P03)/;

/**
 * What an error of a connection means: StoreUnavailable where the database, or the way to it, was not fit to answer; a
 * refusal of the statement itself is left as it is.
 */
function meaning(error: unknown): unknown {
  const state = stateOf(error);
  if (state !== undefined && !unfit.test(state)) return error;
  return new StoreUnavailable(error instanceof Error ? error.message : String(error), error);
}
