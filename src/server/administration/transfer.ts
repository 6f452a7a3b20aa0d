// Imports and exports of users by a command, as a stream, with or without a running server.

import { z } from 'zod';
import { leavingLines } from '../../moving/leave.ts';
import { type MoveProgress, receiveMoved } from '../../moving/receive.ts';
import { importRules } from '../../records/connections/database-attributes.ts';
import { databaseOptions } from '../../records/database-options.ts';
import type { Store } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { expectedConnection } from '../../users/connection-check.ts';
import type { ImportDependencies } from '../../users/transfer/import.ts';
import { exportUsers } from '../../users/transfer/transfer-export.ts';
import type { FailedUser } from '../../users/transfer/transfer-file.ts';
import {
  type BatchPauses,
  databaseOf,
  type ImportCounts,
  importFile,
} from '../../users/transfer/whole-file.ts';

/** The order. */
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
  /** The users of another tenant move here. */
  z.strictObject({
    command: z.literal('move'),
    connection: z.string().max(255).optional(),
    enrol: z.boolean().optional(),
  }),
  /** What `gatehouse move out` writes about users. */
  z.strictObject({ command: z.literal('leave') }),
]);

export type Transfer = z.output<typeof transferSchema>;

export const TRANSFER_PATH = '/users';

export type TransferProgress =
  | { failed: FailedUser }
  /** Lines of the exported file. */
  | { lines: string }
  | { counts: ImportCounts }
  | MoveProgress
  /** Lines of one of the files of `gatehouse move out`. */
  | { of: string; lines: string };

export interface TransferDependencies extends ImportDependencies {
  between: BatchPauses;
}

/**
 * Carries out an import or export.
 * @param file the text to import; an export reads nothing of it.
 * @throws FileFault; Error if the process ends before the transfer is complete
 */
export async function* transferUsers(
  deps: TransferDependencies,
  transfer: Transfer,
  file: AsyncIterable<string>,
): AsyncGenerator<TransferProgress> {
  if (transfer.command === 'export') return yield* exportLines(deps, transfer);
  if (transfer.command === 'move') {
    if (transfer.connection !== undefined) await databaseOf(deps, transfer.connection);
    return yield* receiveMoved(
      { ...deps, letsEnrol: transfer.enrol },
      file,
      transfer.connection,
      deps.between,
    );
  }
  if (transfer.command === 'leave') return yield* leavingLines(deps.store, deps.between);
  const connection = await databaseOf(deps, transfer.connection);
  const rules = importRules(databaseOptions(connection));
  const options = { ...expectedConnection(connection), upsert: transfer.upsert, ...rules };
  yield* importFile(deps, file, options, deps.between);
}

async function* exportLines(
  { store, between }: TransferDependencies,
  options: { connection?: string | undefined; withHashes: boolean },
): AsyncGenerator<TransferProgress> {
  if (options.connection !== undefined) await requireConnection(store, options.connection);
  for await (const users of exportUsers(store, options)) {
    if (between.isEnding()) throw new Error('the server is about to end');
    if (users.length > 0) yield { lines: users.map((user) => `${JSON.stringify(user)}\n`).join('') };
    await between.rest(0);
  }
}

async function requireConnection(store: Store, name: string): Promise<void> {
  const connections = await listAll(store.collection('connections'));
  if (connections.some((one) => one.name === name)) return;
  throw new Error(`there is no connection ${name}: ${connections.map((one) => one.name).join(', ')}`);
}
