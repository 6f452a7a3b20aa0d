// Transactions without time limits, for starts and commands: they wait for others and read whole tables.
import { unlimited } from './postgres-connection.ts';
import { inTransaction, type Run } from './postgres-pool.ts';

/**
 * Works in a transaction without time limits. The limits set for the role are lifted in the same message that begins
 * the transaction, so that none can end it in between.
 */
export function inLongTransaction<T>(run: Run, work: () => Promise<T>): Promise<T> {
  return inTransaction(run, work, undefined, `BEGIN; ${unlimited('LOCAL')}`);
}
