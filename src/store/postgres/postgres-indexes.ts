// Creates indexes that a release adds to large tables. They are created while the server runs, by one process at a
// time, without locking the table for minutes. Until an index exists, its searches read more records.
import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { StoreUnavailable } from '../contract.ts';
import { collectionSpecs } from '../record.ts';
import { postgresDialect } from '../sql/dialect.ts';
import { textIndexes } from '../sql/schema.ts';
import { unlimited } from './postgres-connection.ts';
import { inLongTransaction } from './postgres-long-transaction.ts';
import { type Pool, type Run, stateOf } from './postgres-pool.ts';
import type { Pooling } from './postgres-pooling.ts';

export interface Index {
  table: string;
  index: string;
  drop: string;
  sql: string;
}

interface Making {
  /** What {@link missingIndexes} returned at the start. */
  missing: readonly Index[];
  pooling: Pooling;
  log: Pick<Logger, 'warn' | 'error'> | undefined;
}

/** How long to wait between attempts to cancel a statement, in milliseconds. */
const AGAIN = 200;
/** How often a process checks whether the one creating the indexes has left some missing, in milliseconds. */
const LOOKED_AGAIN = 2_000;
/** Creates or drops an index without blocking writes to the table. */
const HOW = 'CONCURRENTLY';

/** @param schema quoted; it makes the statements of different schemas distinguishable by their text. */
const declaredIndexes = (schema: string): Index[] =>
  collectionSpecs().flatMap(([name, spec]) => {
    const table = `${schema}."${name}"`;
    if (spec.kept !== undefined) return [];
    return textIndexes(name, spec, postgresDialect, HOW, table).map(({ index, sql }) => ({
      table,
      index,
      drop: `DROP INDEX ${HOW} IF EXISTS ${schema}."${index}"`,
      sql,
    }));
  });

/** Returns the declared indexes that do not exist, or whose creation was interrupted. */
export async function missingIndexes(run: Run): Promise<Index[]> {
  const { rows: schemas } = await run({ text: 'SELECT quote_ident(current_schema())' }, []);
  const schema = schemas[0]?.[0] ?? '';
  const all = declaredIndexes(schema);
  const { rows } = await run(
    {
      text: `SELECT i FROM unnest($1::text[]) i WHERE NOT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($2 || '.' || quote_ident(i)) AND indisvalid)`,
    },
    [all.map(({ index }) => index), schema],
  );
  const missing = new Set(rows.map(([index]) => index));
  return all.filter(({ index }) => missing.has(index));
}

/**
 * Creates the missing indexes; processes take turns until all exist. A failure is logged, and this process then leaves
 * the work to others and to the next start.
 * @returns a function that cancels the work of this process and waits for its end.
 */
export function makeIndexes(pool: Pool, { missing, pooling, log }: Making): () => Promise<void> {
  if (missing.length === 0) return async () => undefined;
  const stop = new AbortController();
  const { signal } = stop;
  let isMaking = false;
  const make = async (run: Run) => {
    // On a connection that a pooler lends per transaction, this setting would affect other clients.
    if (pooling !== 'transaction') await run({ text: unlimited('SESSION') }, []);
    for (const { index, drop, sql } of await missingIndexes(run)) {
      if (signal.aborted) return;
      log?.warn({ index }, 'an index is made, once, while the server is at work');
      // An index whose creation was interrupted exists but is invalid: drop it first.
      await run({ text: drop }, []);
      await run({ text: sql }, []);
    }
    // Without statistics on the indexed expression, the planner would scan the table in the order of its key.
    for (const table of new Set(missing.map((one) => one.table))) await run({ text: `ANALYZE ${table}` }, []);
  };
  const makeNow = (run: Run) => {
    isMaking = true;
    return make(run).finally(() => {
      isMaking = false;
    });
  };
  const made = async () => {
    while (!signal.aborted && !(await isDoneAlone(pool, missing, makeNow))) {
      await setTimeout(LOOKED_AGAIN, undefined, { signal }).catch(() => undefined);
    }
  };
  const working = made().catch((err) => {
    if (!signal.aborted) log?.error({ err }, 'an index could not be made');
  });
  return async () => {
    stop.abort();
    const over = working.then(() => true);
    const isOver = () => Promise.race([over, setTimeout(AGAIN, false, { ref: false })]);
    // Cancelled repeatedly, because the work may be just before its next statement. Statements of other processes are
    // left alone.
    while (!(await isOver())) if (isMaking) await endOf(pool, missing);
  };
}

/**
 * Works unless another process does, or a statement of an ended process still runs in the database. The lock belongs to
 * a transaction, which a pooler keeps on one connection. It is never waited for: creating an index waits for all older
 * transactions, including waiting ones.
 * @returns whether this process worked.
 */
async function isDoneAlone(
  pool: Pool,
  indexes: readonly Index[],
  work: (run: Run) => Promise<void>,
): Promise<boolean> {
  try {
    return await pool.alone((lock) =>
      inLongTransaction(lock, async () => {
        const { rows } = await lock(
          { text: `SELECT pg_try_advisory_xact_lock(hashtext('gatehouse indexes ' || current_schema()))` },
          [],
        );
        if (rows[0]?.[0] !== 't') return false;
        // Queried on another connection: in this transaction the query would hold a snapshot, which the creation of the
        // index would wait for.
        const begun = await pool.run({ text: `SELECT 1 ${UNDER_WAY}` }, [statementsOf(indexes)]);
        if (begun.rows.length > 0) return false;
        await pool.alone(work);
        return true;
      }),
    );
  } catch (error) {
    if (isLost(error)) return false;
    throw error;
  }
}

/** Returns whether the database was unreachable or has ended the connection, so that trying again may succeed. */
function isLost(error: unknown): boolean {
  return error instanceof StoreUnavailable && /^(?:08|57P|53300|$)/.test(stateOf(error.database) ?? '');
}

/** Sessions that are running one of the statements in the parameter. */
const UNDER_WAY = `FROM pg_stat_activity WHERE query = ANY($1) AND usename = current_user AND datname = current_database() AND state = 'active'`;

const statementsOf = (indexes: readonly Index[]) => indexes.flatMap(({ drop, sql }) => [drop, sql]);

/** Cancels the creation of these indexes: otherwise the database would continue it after this process has gone. */
async function endOf(pool: Pool, indexes: readonly Index[]): Promise<void> {
  await pool.run({ text: `SELECT pg_cancel_backend(pid) ${UNDER_WAY}` }, [statementsOf(indexes)]);
}
