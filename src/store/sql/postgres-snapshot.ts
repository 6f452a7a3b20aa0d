// Snapshots of a PostgreSQL database, read while others write.
import type { Clock } from '../../runtime/clock.ts';
import type { Snapshot } from '../contract.ts';
import type { AnyRecord } from '../record.ts';
import type { Pool, Run } from './postgres-pool.ts';
import { type PostgresTable, recordIn } from './postgres-table.ts';
import { idText } from './postgres-text.ts';

const atOnce = 500;

/** Calls `work` with what is committed now. */
export function withSnapshot<T>(
  { pool, tables, clock }: { pool: Pool; tables: ReadonlyMap<string, PostgresTable>; clock: Clock },
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  return pool.alone(async (run) => {
    // No limit on idle time: the reader of the snapshot may wait for a disk or for a network.
    const begin =
      'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0';
    await run({ text: begin }, []);
    const at = clock();
    // The snapshot is taken by the first query of the transaction.
    await run({ text: 'SELECT 1 FROM gatehouse_meta' }, []);
    return work({ at, records: (name) => pages(run, tables.get(name), at) });
  });
}

/** Yields the records of a table that have not expired, in batches. */
async function* pages(
  run: Run,
  table: PostgresTable | undefined,
  at: number,
): AsyncGenerator<readonly AnyRecord[]> {
  if (table === undefined || table.spec.kept === 'memory') return;
  for (let after = ''; ; ) {
    const { rows } = await run(table.statements.page, [after, at / 1000, atOnce]);
    const records = rows.map((row) => recordIn(table, row));
    yield records;
    const last = records.at(-1);
    if (last === undefined || records.length < atOnce) return;
    after = idText(last.id);
  }
}
