// Transactions that take their time: what is done at start and by commands waits for others and reads whole tables.
import { unlimited } from './postgres-connection.ts';
import { inTransaction, type Run } from './postgres-pool.ts';

/**
 * Does some work in a transaction, all of it or nothing, in whatever time it takes: the limits that its role is given are
 * lifted with its beginning, so that none of them can end it in between.
 */
export function inLongTransaction<T>(run: Run, work: () => Promise<T>): Promise<T> {
  return inTransaction(run, work, undefined, `BEGIN; ${unlimited('LOCAL')}`);
}
