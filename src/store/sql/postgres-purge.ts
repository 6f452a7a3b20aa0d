// What takes expired records off the disk. Of most tables nothing expires in most seconds, so that all of them are asked
// together whether anything has.
import type { Pool, PreparedStatement } from './postgres-pool.ts';
import type { PostgresTable } from './postgres-table.ts';

const atOnce = 500;

/** Deletes some expired records of each table that has any. @returns what does so, and says whether there may be more. */
export function createPurge(pool: Pool, tables: readonly PostgresTable[]): () => Promise<boolean> {
  const expired = anyExpired(tables);
  return async () => {
    const now = (tables[0]?.clock() ?? 0) / 1000;
    const { rows } = await pool.read(expired, [now]);
    let more = false;
    for (const [at, { statements }] of tables.entries()) {
      if (rows[0]?.[at] !== 't') continue;
      const { count } = await pool.run(statements.purge, [now, atOnce]);
      more ||= count === atOnce;
    }
    return more;
  };
}

/** Of each table whether something has expired by a time; the index of expiry has what expires first at its beginning. */
export function anyExpired(tables: readonly Pick<PostgresTable, 'name'>[]): PreparedStatement {
  const each = tables.map(({ name }) => `(SELECT min(expires_at) FROM "${name}") <= $1`);
  return { name: 'expired', text: `SELECT ${each.join(', ')}` };
}
