// Queries in PostgreSQL.
import { type Query, QueryTimeout, StoreUnavailable } from '../contract.ts';
import { defaultLimit } from '../filter.ts';
import type { Statement } from './any-order.ts';
import { type Candidate, candidatePage } from './candidate-page.ts';
import type { Found } from './collection.ts';
import { postgresDialect } from './dialect.ts';
import { queryStatements } from './filter.ts';
import { type Pool, stateOf } from './postgres-pool.ts';
import { type PostgresTable, recordIn } from './postgres-table.ts';

const queryCanceled = '57014';

/** Returns a page of a query's result and, if the query asks for it, the number of matches. @throws QueryTimeout */
export async function search({ run }: Pool, table: PostgresTable, query: Query): Promise<Found> {
  const { limit = defaultLimit } = query;
  const now = table.clock() / 1000;
  try {
    const ask = async ({ sql, parameters }: Statement) => (await run({ text: sql }, parameters)).rows;
    const first = await candidatePage({ ...table, now }, query, postgresDialect, {
      numbers: async (statement) => ((await ask(statement))[0] ?? []).map(Number),
      candidates: async (statement) =>
        (await ask(statement)).map((row) => candidateOf(row, () => recordIn(table, row))),
    });
    if (first.found !== undefined) return first.found;
    const { page, total } = queryStatements(table, first.query, now, postgresDialect);
    const [found, counted] = await Promise.all([
      limit === 0 ? { rows: [] } : run({ text: page.sql }, page.parameters),
      query.total ? run({ text: total.sql }, total.parameters) : undefined,
    ]);
    const records = found.rows.slice(0, limit).map((row) => recordIn(table, row));
    const count = counted === undefined ? undefined : Number(counted.rows[0]?.[0]);
    return { records, more: found.rows.length > limit, total: count };
  } catch (error) {
    if (error instanceof StoreUnavailable && stateOf(error.database) === queryCanceled)
      throw new QueryTimeout();
    throw error;
  }
}

function candidateOf(row: readonly (string | null)[], record: Candidate['record']): Candidate {
  const [n, ...held] = row.slice(postgresDialect.stored.length);
  return { n: Number(n), held: held.map((one) => one === '1'), record };
}
