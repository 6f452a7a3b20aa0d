// The thread that commits or, opened without statements, runs searches. It does not know collections: it gets the
// statements when it starts and then, for each transaction, their numbers and parameters.
import { getPriority, setPriority } from 'node:os';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort } from 'node:worker_threads';
import { commitPragmas } from './sqlite-pragmas.ts';

type Parameters = (string | number | null)[];

export type Request =
  | { open: { file: string; statements: string[] } }
  | { commit: [statement: number, ...Parameters][] }
  | { read: { sql: string; parameters: Parameters } }
  | { compact: true }
  | { close: true; stays: boolean };

/** The answers; `code` is SQLite's extended error code. */
export type Answer = { rows?: Record<string, unknown>[] } | { error: string; code: number | undefined };

let database: DatabaseSync;
let statements: string[];
let prepared: StatementSync[];

parentPort?.on('message', (request: Request) => {
  // An error here ends the thread.
  if ('open' in request) return open(request.open);
  let answer: Answer;
  try {
    answer = serve(request);
  } catch (thrown) {
    const { message, errcode } = thrown as Error & { errcode?: number };
    answer = { error: message, code: errcode };
  }
  parentPort?.postMessage(answer);
  if ('close' in request && !request.stays) parentPort?.close();
});

function open(given: { file: string; statements: string[] }): void {
  ({ statements } = given);
  prepared = [];
  if (statements.length === 0) yieldToOthers();
  database = new DatabaseSync(given.file);
  database.exec(commitPragmas);
}

function serve(request: Exclude<Request, { open: object }>): Answer {
  if ('commit' in request) commit(request.commit);
  else if ('read' in request) {
    return { rows: database.prepare(request.read.sql).all(...request.read.parameters) };
  } else if ('compact' in request) database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
  else database.close();
  return {};
}

function commit(operations: [number, ...Parameters][]): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    for (const [number, ...parameters] of operations) statement(number).run(...parameters);
    database.exec('COMMIT');
  } catch (error) {
    // After some errors SQLite has already rolled back.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function statement(number: number): StatementSync {
  const known = prepared[number] ?? database.prepare(statements[number] ?? '');
  prepared[number] = known;
  return known;
}

/**
 * Lowers the priority of a searching thread by ten steps (setpriority(2)), so that logins go first on a busy machine.
 * Only Linux has priorities per thread; elsewhere the whole process would be affected.
 */
function yieldToOthers(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(Math.min(19, getPriority() + 10));
  } catch {
    // A service manager may forbid the call (SystemCallFilter=~@resources); the thread then keeps its priority.
  }
}
