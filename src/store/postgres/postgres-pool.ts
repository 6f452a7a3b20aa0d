// Connections to PostgreSQL. Every wait is limited: for a connection, for an answer, for a lock; and so is the number of waiting
// requests. A failure caused by the database's state, and not by the statement, is a StoreUnavailable.
import pg from 'pg';
import { StoreUnavailable } from '../contract.ts';
import { type PlainParameter, parameterToPostgres } from '../sql/postgres-text.ts';
import { connectionCount, connectionSettings, greeting } from './postgres-connection.ts';

/** A parameter; a list is an array. */
export type Parameter = PlainParameter | readonly PlainParameter[];

/** A statement; a named one is prepared once in each connection. */
export interface PreparedStatement {
  name?: string;
  text: string;
}

/** The result of a statement: its rows as texts, and the number of rows it changed. */
interface Outcome {
  rows: (string | null)[][];
  count: number;
}

/** Runs a statement, on any connection or within one transaction. */
export type Run = (statement: PreparedStatement, parameters: readonly Parameter[]) => Promise<Outcome>;

export interface Pool {
  /**
   * Runs one statement as a transaction of its own.
   * @throws StoreUnavailable; DatabaseError, whose SQLSTATE {@link stateOf} returns.
   */
  run: Run;
  /** As `run`, for a statement that only reads and waits for no lock: on a connection shared with other reads. */
  read: Run;
  /**
   * Runs statements as one transaction, and again if the database ended it because of another transaction.
   * @param first only reads or locks; it is sent together with BEGIN
   */
  transaction<T, F = void>(
    work: (run: Run, found: F) => Promise<T>,
    first?: (run: Run) => Promise<F>,
  ): Promise<T>;
  /** Works on a separate connection without time limits, for starts and commands. */
  alone<T>(work: (run: Run) => Promise<T>): Promise<T>;
  settings: pg.ClientConfig;
  /** The maximum number of connections of this process. */
  most: number;
  /** Returns whether a server process of the database serves a connection of this pool. */
  isOwn(processId: number): boolean;
  close(): Promise<void>;
}

/**
 * A statement with an unknown outcome is not repeated. These errors guarantee that nothing was done: a serialization failure, a
 * deadlock, and, in a transaction, a unique key that another one took after it was checked.
 */
const retried = ['40001', '40P01'];
export const uniqueViolation = '23505';
const mostTries = 8;
/** The number of connections that all reads of records share. */
const readers = 2;
/** Requests beyond this number are refused at once: waiting would use memory and end in a timeout anyway. */
const mostWaiting = 10_000;

/** Returns the SQLSTATE of a database error; undefined for any other error. */
export function stateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** For connections that only look up records by key: a statement with a list of ids would otherwise be planned anew for each list. */
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
    // `pipeline` is missing in the types: it sends statements without waiting for earlier answers.
    pipeline: true,
    onConnect: async (client: pg.ClientBase) => void (await client.query(hello)),
  } as pg.PoolConfig);
  const processes = new Set<number>();
  pool.on('error', onError);
  pool.on('connect', (client) => {
    processes.add(processOf(client));
    // The query under way reports the error to its caller; without a listener the event would end the process.
    client.on('error', () => undefined);
  });
  pool.on('remove', (client) => void processes.delete(processOf(client)));

  const connected = <T>(work: (client: pg.PoolClient) => Promise<T>) => withConnection(pool, work);
  const shared = openSharedConnections(settings, `${hello}; ${ONE_PLAN}`, readers);
  const read = sharing(shared);

  return {
    settings,
    // One more connection listens for changes of the configuration.
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

/** Returns a `Run` on shared connections, with a limited number of reads under way. */
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

/** Works on a connection of the pool; the connection is discarded if it failed. */
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

/** Returns the process id of the database's server process; `pg` has it, but not its types. */
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

/** Works in a transaction: all is committed or nothing. @param first only reads or locks; it is sent together with BEGIN */
export async function inTransaction<T, F = void>(
  run: Run,
  work: (found: F) => Promise<T>,
  first?: () => Promise<F>,
  begin = 'BEGIN',
): Promise<T> {
  const begun = run({ text: begin }, []);
  const reading = first?.();
  // Waits for BEGIN before anything is written; if it failed, its error is the one to report.
  await Promise.allSettled([begun, reading]);
  await begun;
  try {
    const result = await work((await reading) as F);
    await run({ text: 'COMMIT' }, []);
    return result;
  } catch (error) {
    // A failed connection is discarded, which ends its transaction.
    if (!(error instanceof StoreUnavailable)) await run({ text: 'ROLLBACK' }, []);
    throw error;
  }
}

/** Repeats work that the database ended because of another transaction, up to {@link mostTries} times. */
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

/**
 * SQLSTATE classes for connections, resources and operator intervention (including timeouts); a standby; a lock that was not
 * available.
 */
const unfit = /^(?:08|53|57|58|28)|^(?:25006|55P03)/;

/**
 * Converts an error of a connection: to StoreUnavailable if the database or the connection could not answer; an error of the
 * statement itself is returned unchanged.
 */
export function meaning(error: unknown): unknown {
  const state = stateOf(error);
  if (state !== undefined && !unfit.test(state)) return error;
  return new StoreUnavailable(error instanceof Error ? error.message : String(error), error);
}

// Connections that many reads share: each statement is sent at once, without waiting for earlier answers. A statement
// then costs half of what it costs on a connection of its own. Not for statements that may wait for a lock.

interface SharedConnections {
  /** Returns a connection that is connected or connecting. @throws what connecting throws. */
  next(): Promise<pg.Client>;
  close(): Promise<void>;
}

interface SharedConnection {
  client: pg.Client;
  connected: Promise<pg.Client>;
}

/**
 * Returns connections that are opened when first needed, and again after they were lost.
 * @param hello the statements that each connection runs first
 */
function openSharedConnections(settings: pg.ClientConfig, hello: string, count: number): SharedConnections {
  const shared: (SharedConnection | undefined)[] = Array.from({ length: count });
  let turn = 0;
  let closed = false;

  function connect(at: number): SharedConnection {
    // `pipeline` is missing in the types.
    const client = new pg.Client({ ...settings, pipeline: true } as pg.ClientConfig);
    const lose = () => {
      if (shared[at]?.client === client) shared[at] = undefined;
    };
    // The queries under way report the error to their callers.
    client.on('error', lose);
    client.on('end', lose);
    const connected = (async () => {
      try {
        await client.connect();
        await client.query(hello);
        return client;
      } catch (error) {
        lose();
        void client.end().catch(() => undefined);
        throw error;
      }
    })();
    return { client, connected };
  }

  return {
    next() {
      if (closed) throw new StoreUnavailable('the connections are closed');
      turn = (turn + 1) % count;
      const connection = shared[turn] ?? connect(turn);
      shared[turn] = connection;
      return connection.connected;
    },
    async close() {
      closed = true;
      const open = shared.flatMap((connection) => connection ?? []);
      await Promise.allSettled(open.map(async ({ connected }) => (await connected).end()));
    },
  };
}
