// Users in and out by the command, while a server runs or not: what is read and told as it comes.
import { z } from 'zod';
import { importRules } from '../records/database-attributes.ts';
import { databaseOptions } from '../records/database-options.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { exportUsers } from '../users/transfer/export.ts';
import type { FailedUser } from '../users/transfer/file.ts';
import type { ImportDependencies } from '../users/transfer/import.ts';
import { type Between, databaseOf, type ImportCounts, importFile } from '../users/transfer/whole-file.ts';

/** What is asked for. */
export const transferSchema = z.discriminatedUnion('command', [
  z.strictObject({
    command: z.literal('import'),
    connection: z.string().max(255).optional(),
    upsert: z.boolean(),
  }),
  z.strictObject({
    command: z.literal('export'),
    connection: z.string().max(255).optional(),
    withHashes: z.boolean(),
  }),
]);

export type Transfer = z.output<typeof transferSchema>;

/** Where a running server takes them. */
export const TRANSFERS = '/users';

/** What is told on the way, and at the end. */
export type TransferNews =
  | { failed: FailedUser }
  /** Lines of the exported file. */
  | { lines: string }
  | { counts: ImportCounts };

export interface TransferDependencies extends ImportDependencies {
  between: Between;
}

/**
 * Carries one out.
 * @param file the text that is imported; nothing of it is read for an export.
 * @throws FileFault; Error where the process ends before it is done.
 */
export async function* transferUsers(
  deps: TransferDependencies,
  transfer: Transfer,
  file: AsyncIterable<string>,
): AsyncGenerator<TransferNews> {
  if (transfer.command === 'export') return yield* exported(deps, transfer);
  const connection = await databaseOf(deps, transfer.connection);
  const rules = importRules(databaseOptions(connection));
  const options = { connection: connection.name, upsert: transfer.upsert, ...rules };
  yield* importFile(deps, file, options, deps.between);
}

async function* exported(
  { store, between }: TransferDependencies,
  options: { connection?: string | undefined; withHashes: boolean },
): AsyncGenerator<TransferNews> {
  if (options.connection !== undefined) await expectConnection(store, options.connection);
  for await (const users of exportUsers(store, options)) {
    if (between.isEnding()) throw new Error('the server is about to end');
    if (users.length > 0) yield { lines: users.map((user) => `${JSON.stringify(user)}\n`).join('') };
    await between.rest(0);
  }
}

async function expectConnection(store: Store, name: string): Promise<void> {
  const connections = await listAll(store.collection('connections'));
  if (connections.some((one) => one.name === name)) return;
  throw new Error(`there is no connection ${name}: ${connections.map((one) => one.name).join(', ')}`);
}
