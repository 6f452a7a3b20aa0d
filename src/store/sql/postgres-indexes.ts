// Indexes that a release adds to tables with many records: made while the server is at work, by one process at a time, so
// that nobody waits for a table that would be locked for minutes. Until one is there, its searches read more records.
import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { StoreUnavailable } from '../contract.ts';
import { collectionSpecs } from '../keys.ts';
import { postgresDialect } from './dialect.ts';
import { unlimited } from './postgres-connection.ts';
import { inLongTransaction } from './postgres-long-transaction.ts';
import { type Pool, type Run, stateOf } from './postgres-pool.ts';
import type { Pooling } from './postgres-pooling.ts';
import { textIndexes } from './schema.ts';

/** An index that is to be there. */
export interface Index {
  table: string;
  index: string;
  drop: string;
  sql: string;
}

interface Making {
  /** What {@link missingIndexes} found at the start. */
  missing: readonly Index[];
  pooling: Pooling;
  log: Pick<Logger, 'warn' | 'error'> | undefined;
}

/** How long is waited for the end of what was told to end, milliseconds. */
const AGAIN = 200;
/** How often a process looks whether the one that makes the indexes has left them undone, milliseconds. */
const LOOKED_AGAIN = 2_000;
/** What says that an index is being made. */
const HOW = 'CONCURRENTLY';

/** @param schema its name, quoted: the statements of one schema are told by their texts from those of others. */
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

/** Those of the declared indexes that are not there, or were begun and not finished. */
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
 * Makes the indexes that are missing, one process after another until they are there. Why one could not be made is in the
 * log; this process then leaves it to others and to the next start.
 * @returns what ends the work of this process, and waits for that.
 */
export function makeIndexes(pool: Pool, { missing, pooling, log }: Making): () => Promise<void> {
  if (missing.length === 0) return async () => undefined;
  const stop = new AbortController();
  const { signal } = stop;
  let isMaking = false;
  const make = async (run: Run) => {
    // What a pooler lends for a transaction would keep this for others.
    if (pooling !== 'transaction') await run({ text: unlimited('SESSION') }, []);
    for (const { index, drop, sql } of await missingIndexes(run)) {
      if (signal.aborted) return;
      log?.warn({ index }, 'an index is made, once, while the server is at work');
      // One that was begun and not finished would be taken for one that is there.
      await run({ text: drop }, []);
      await run({ text: sql }, []);
    }
    // Until then the database knows nothing of a field in a record's text, and would rather read the table in its order.
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
    // More than once: it may just be about to begin. What another process makes is left alone.
    while (!(await isOver())) if (isMaking) await endOf(pool, missing);
  };
}

/**
 * Works unless another process does, or what one has begun goes on in the database without it. The lock is a transaction's,
 * which poolers leave on its connection, and is never waited for: an index waits for all statements that wait.
 * @returns whether it was this process that worked.
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
        // By another connection: in a transaction what was found would keep its snapshot, which the index would wait for.
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

/** Whether the database was not there, or has ended the connection: it may be there again in a moment. */
function isLost(error: unknown): boolean {
  return error instanceof StoreUnavailable && /^(?:08|57P|53300|$)/.test(stateOf(error.database) ?? '');
}

/** Those that work at statements, which are a parameter. */
const UNDER_WAY = `FROM pg_stat_activity WHERE query = ANY($1) AND usename = current_user AND datname = current_database() AND state = 'active'`;

const statementsOf = (indexes: readonly Index[]) => indexes.flatMap(({ drop, sql }) => [drop, sql]);

/** Ends what is being made of these indexes: the database would go on with it, and the process waits for its connection. */
async function endOf(pool: Pool, indexes: readonly Index[]): Promise<void> {
  await pool.run({ text: `SELECT pg_cancel_backend(pid) ${UNDER_WAY}` }, [statementsOf(indexes)]);
}
