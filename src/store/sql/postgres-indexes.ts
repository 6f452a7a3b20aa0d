// Indexes that a release adds to tables with many records: made while the server is at work, by one process, so that nobody
// waits for a table that would be locked for minutes. Until one is there, its searches read more records.
import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { collectionSpecs } from '../keys.ts';
import { postgresDialect } from './dialect.ts';
import { inTransaction, type Pool, type Run } from './postgres-pool.ts';
import { textIndexes } from './schema.ts';

/** An index that is to be there. */
interface Index {
  index: string;
  sql: string;
}

/** How long is waited for the end of what was told to end, milliseconds. */
const AGAIN = 200;
/** What says that an index is being made. */
const HOW = 'CONCURRENTLY';

const declaredIndexes = (): Index[] =>
  collectionSpecs().flatMap(([name, spec]) =>
    spec.kept === undefined ? textIndexes(name, spec, postgresDialect, HOW) : [],
  );

/** Those of the declared indexes that are not there, or were begun and not finished. */
export async function missingIndexes(run: Run): Promise<Index[]> {
  const all = declaredIndexes();
  const { rows } = await run(
    {
      text: 'SELECT i FROM unnest($1::text[]) i WHERE NOT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(quote_ident(i)) AND indisvalid)',
    },
    [all.map(({ index }) => index)],
  );
  const missing = new Set(rows.map(([index]) => index));
  return all.filter(({ index }) => missing.has(index));
}

/**
 * Makes the indexes that are missing, unless another process does. Why one could not be made is in the log; the next start
 * tries again.
 * @param missing what {@link missingIndexes} found at the start.
 * @returns what ends the work, and waits for that.
 */
export function makeIndexes(
  pool: Pool,
  missing: readonly Index[],
  log: Pick<Logger, 'warn' | 'error'> | undefined,
): () => Promise<void> {
  if (missing.length === 0) return async () => undefined;
  let stopped = false;
  const make = async (run: Run) => {
    for (const { index, sql } of await missingIndexes(run)) {
      if (stopped) return;
      log?.warn({ index }, 'an index is made, once, while the server is at work');
      // One that was begun and not finished would be taken for one that is there.
      await run({ text: `DROP INDEX ${HOW} IF EXISTS "${index}"` }, []);
      await run({ text: sql }, []);
    }
  };
  const working = whereNobodyElse(pool, make).catch((err) => {
    if (!stopped) log?.error({ err }, 'an index could not be made');
  });
  return async () => {
    stopped = true;
    let isOver = false;
    const ended = working.then(() => {
      isOver = true;
    });
    // More than once: it may just be about to begin.
    for (; !isOver; await Promise.race([ended, setTimeout(AGAIN)])) await endOf(pool, missing);
  };
}

/** Works where no other process does: the lock is a transaction's, which poolers leave on its connection. */
async function whereNobodyElse(pool: Pool, work: (run: Run) => Promise<void>): Promise<void> {
  await pool.alone((lock) =>
    inTransaction(lock, async () => {
      await lock({ text: 'SET LOCAL idle_in_transaction_session_timeout = 0' }, []);
      const { rows } = await lock(
        { text: `SELECT pg_try_advisory_xact_lock(hashtext('gatehouse indexes ' || current_schema()))` },
        [],
      );
      if (rows[0]?.[0] === 't') await pool.alone(work);
    }),
  );
}

/** Ends what is being made of these indexes: the database would go on with it, and the process waits for its connection. */
async function endOf(pool: Pool, indexes: readonly Index[]): Promise<void> {
  await pool.run(
    {
      text: 'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = ANY($1) AND usename = current_user AND datname = current_database() AND state = $2',
    },
    [indexes.map(({ sql }) => sql), 'active'],
  );
}
