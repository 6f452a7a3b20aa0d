// Deletes expired records. Because in most seconds nothing expires in most tables, one query asks for all tables
// whether anything has.
import type { Clock } from '../../runtime/clock.ts';
import { type DeletionClockStorage, parseState } from '../deletion-clock.ts';
import type { Pool, PreparedStatement } from './postgres-pool.ts';
import { meta, setMeta } from './postgres-schema.ts';
import type { PostgresTable } from './postgres-table.ts';
import { type DatabaseTime, NOW } from './postgres-time.ts';

const atOnce = 500;

interface Purging {
  /** The clock by which expired records are deleted. */
  deletion: Clock;
  /** Receives the database's time with each answer. */
  time: Pick<DatabaseTime, 'heard'>;
}

/** Returns a function that deletes some expired records of each table, and returns whether there may be more. */
export function createPurge(
  pool: Pool,
  tables: readonly PostgresTable[],
  { deletion, time }: Purging,
): () => Promise<boolean> {
  const expired = anyExpired(tables);
  return async () => {
    const asked = performance.now();
    const { rows } = await pool.read(expired, [deletion() / 1000]);
    time.heard(Number(rows[0]?.[tables.length + 1]) * 1000, asked);
    const now = Number(rows[0]?.[tables.length]);
    let more = false;
    for (const [at, { statements }] of tables.entries()) {
      if (rows[0]?.[at] !== 't') continue;
      const { count } = await pool.run(statements.purge, [now, atOnce]);
      more ||= count === atOnce;
    }
    return more;
  };
}

// docs/understand/decisions/store.md#expired-records-in-postgresql-are-deleted-in-batches-and-no-table-is-partitioned-by-time
/**
 * Returns the statement that asks, for each table, whether a record has expired by a time; the last two columns are
 * that time and the database's own time. The earlier of the given time and the database's counts, because a process
 * whose clock is ahead would delete records that are still valid for the others. The index on expiry lists the earliest
 * first.
 */
export function anyExpired(tables: readonly Pick<PostgresTable, 'name'>[]): PreparedStatement {
  const now = `least($1::float8, ${NOW})`;
  const each = tables.map(({ name }) => `(SELECT min(expires_at) FROM "${name}") <= t.now`);
  return {
    name: 'expired',
    text: `SELECT ${each.join(', ')}, t.now, ${NOW} FROM (SELECT ${now} AS now OFFSET 0) t`,
  };
}

/**
 * Stores the state of the deletion clock in the database.
 * @param clock the database's time: a later time is never stored as believed.
 */
export function stateInDatabase(pool: Pool, clock: Clock): DeletionClockStorage {
  return {
    read: async () => parseState(await meta(pool.run, 'deletion')),
    write: async (state) => {
      const text = JSON.stringify({ ...state, believed: Math.min(state.believed, clock()) });
      await pool.run({ text: setMeta }, ['deletion', text]);
    },
  };
}
