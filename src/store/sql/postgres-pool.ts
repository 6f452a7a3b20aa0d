// Connections to PostgreSQL. All waiting has an end: for a connection, for the database's answer, for a lock; and only
// so many wait. What fails because of the database's state, and not of what was asked, is a StoreUnavailable.
import pg from 'pg';
import { StoreUnavailable } from '../contract.ts';
import { connectionCount, connectionSettings, greeting } from './postgres-connection.ts';
import { openSharedConnections, type SharedConnections } from './postgres-shared-connections.ts';
import { parameterToPostgres } from './postgres-text.ts';

/** A parameter; a list is an array of texts. */
export type Parameter = string | number | null | readonly string[];

/** A statement; one with a name is prepared once in each connection. */
export interface PreparedStatement {
  name?: string;
  text: string;
}

/** What a statement gave: its rows as texts, and how many it made or changed. */
interface Outcome {
  rows: (string | null)[][];
  count: number;
}

/** Runs a statement: by any connection, or within one transaction. */
export type Run = (statement: PreparedStatement, parameters: readonly Parameter[]) => Promise<Outcome>;

export interface Pool {
  /** Runs one statement, a transaction of its own. @throws StoreUnavailable; DatabaseError as {@link stateOf} tells. */
  run: Run;
  /** As `run`, of a statement that only reads and waits for no lock: by a connection that others share. */
  read: Run;
  /**
   * Runs statements as one transaction; once more where the database ended it because of another.
   * @param first what only reads or locks, and is asked together with the beginning
   */
  transaction<T, F = void>(
    work: (run: Run, found: F) => Promise<T>,
    first?: (run: Run) => Promise<F>,
  ): Promise<T>;
  /** A connection of its own, without a limit of time, for what is done at start and by commands. */
  alone<T>(work: (run: Run) => Promise<T>): Promise<T>;
  /** Settings of a connection that is not one of these. */
  settings: pg.ClientConfig;
  /** How many connections this process has at most. */
  most: number;
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
/** Connections that all reads of records share. */
const readers = 2;
/** Those beyond are refused at once: what waits takes memory, and would wait in vain. */
const mostWaiting = 10_000;

/** SQLSTATE of what a database refused; undefined where it was none. */
export function stateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/**
 * Of connections that find records by their keys alone: a plan for a list of them would be made anew for each list, since
 * one of few looks cheaper than what is planned for any.
 */
const ONE_PLAN = 'SET plan_cache_mode = force_generic_plan';

/** Opens a pool; connections are made when they are needed. */
export function openPool(url: string, onError: (error: Error) => void): Pool {
  const settings = connectionSettings(url);
  const hello = greeting(new URL(url));
  const connections = connectionCount(new URL(url));
  const pool = new pg.Pool({
    ...settings,
    max: connections,
    idleTimeoutMillis: 30_000,
    // Younger than the types: what is asked at once is sent at once.
    pipeline: true,
    onConnect: async (client: pg.ClientBase) => void (await client.query(hello)),
  } as pg.PoolConfig);
  const processes = new Set<number>();
  pool.on('error', onError);
  pool.on('connect', (client) => {
    processes.add(processOf(client));
    // Whoever works with one that breaks is told by what they asked for; unheard it would end the process.
    client.on('error', () => undefined);
  });
  pool.on('remove', (client) => void processes.delete(processOf(client)));

  const connected = <T>(work: (client: pg.PoolClient) => Promise<T>) => withConnection(pool, work);
  const shared = openSharedConnections(settings, `${hello}; ${ONE_PLAN}`, readers);
  const read = sharing(shared);

  return {
    settings,
    // One more hears of changes of the configuration.
    most: connections + readers + 1,
    read,
    isOwn: (processId) => processes.has(processId),
    run: (statement, parameters) =>
      retrying(retried, () => connected((client) => ask(client, statement, parameters))),
    transaction: (work, first) =>
      retrying([...retried, uniqueViolation], () =>
        connected((client) => withinTransaction(client, work, first)),
      ),
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
    async close() {
      await shared.close();
      await pool.end();
    },
  };
}

/** Runs statements by connections that are shared, at most so many at once. */
function sharing(shared: SharedConnections): Run {
  let reading = 0;
  return async (statement, parameters) => {
    if (reading >= mostWaiting) throw new StoreUnavailable('too many requests wait for the database');
    reading += 1;
    try {
      const client = await shared.next().catch((error) => {
        throw meaning(error);
      });
      return await ask(client, statement, parameters);
    } finally {
      reading -= 1;
    }
  };
}

/** Works with a connection of its own, which is given up where it failed. */
async function withConnection<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  if (pool.waitingCount >= mostWaiting) throw new StoreUnavailable('too many requests wait for the database');
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

/** The database's process of a connection, which the client keeps and its types do not have. */
export const processOf = (client: pg.ClientBase) =>
  Number((client as unknown as { processID: number }).processID);

async function ask(
  client: pg.ClientBase,
  { name, text }: PreparedStatement,
  parameters: readonly Parameter[],
): Promise<Outcome> {
  try {
    const { rows, rowCount } = await client.query<(string | null)[]>({
      ...(name !== undefined && { name }),
      text,
      values: parameters.map(parameterToPostgres),
      rowMode: 'array',
    });
    return { rows, count: rowCount ?? 0 };
  } catch (error) {
    throw meaning(error);
  }
}

function withinTransaction<T, F>(
  client: pg.ClientBase,
  work: (run: Run, found: F) => Promise<T>,
  first?: (run: Run) => Promise<F>,
): Promise<T> {
  const run: Run = (statement, parameters) => ask(client, statement, parameters);
  return inTransaction(run, (found) => work(run, found), first && (() => first(run)));
}

/**
 * Does some work in a transaction of a connection, all of it or nothing.
 * @param first what only reads or locks, and is asked together with the beginning
 */
export async function inTransaction<T, F = void>(
  run: Run,
  work: (found: F) => Promise<T>,
  first?: () => Promise<F>,
  begin = 'BEGIN',
): Promise<T> {
  const begun = run({ text: begin }, []);
  const reading = first?.();
  // Nothing is written before the transaction has begun; why it has not is what is told.
  await Promise.allSettled([begun, reading]);
  await begun;
  try {
    const result = await work((await reading) as F);
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
export function meaning(error: unknown): unknown {
  const state = stateOf(error);
  if (state !== undefined && !unfit.test(state)) return error;
  return new StoreUnavailable(error instanceof Error ? error.message : String(error), error);
}
