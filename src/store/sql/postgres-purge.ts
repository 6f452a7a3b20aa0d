// What takes expired records off the disk. Of most tables nothing expires in most seconds, so that all of them are asked
// together whether anything has.
import type { Clock } from '../../runtime/clock.ts';
import { type DeletionClockStorage, parseState } from '../deletion-clock.ts';
import type { Pool, PreparedStatement } from './postgres-pool.ts';
import { meta, setMeta } from './postgres-schema.ts';
import type { PostgresTable } from './postgres-table.ts';
import { type DatabaseTime, NOW } from './postgres-time.ts';

const atOnce = 500;

interface Purging {
  /** By what expired records are deleted. */
  deletion: Clock;
  /** Is told what time the database said that it is. */
  time: Pick<DatabaseTime, 'heard'>;
}

/** Deletes some expired records of each table that has any. @returns what does so, and says whether there may be more. */
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

/**
 * Of each table whether something has expired by a time, then that time, and last the database's own: where that is earlier it counts, because a
 * process whose clock is ahead would take away what is good for all others. The index of expiry has what expires first at its
 * beginning.
 */
export function anyExpired(tables: readonly Pick<PostgresTable, 'name'>[]): PreparedStatement {
  const now = `least($1::float8, ${NOW})`;
  const each = tables.map(({ name }) => `(SELECT min(expires_at) FROM "${name}") <= t.now`);
  return {
    name: 'expired',
    text: `SELECT ${each.join(', ')}, t.now, ${NOW} FROM (SELECT ${now} AS now OFFSET 0) t`,
  };
}

/** Notes of the time in the database. @param clock the database's: what was later than it was believed by no means. */
export function stateInDatabase(pool: Pool, clock: Clock): DeletionClockStorage {
  return {
    read: async () => parseState(await meta(pool.run, 'deletion')),
    write: async (state) => {
      const text = JSON.stringify({ ...state, believed: Math.min(state.believed, clock()) });
      await pool.run({ text: setMeta }, ['deletion', text]);
    },
  };
}
