// `gatehouse users`: import, export, and whose a user is.
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { accountReport } from '../server/administration/account.ts';
import { sendOrRunTransfer } from '../server/administration/carry-out.ts';
import type { Transfer, TransferProgress } from '../server/administration/transfer.ts';
import { readSettings } from '../settings/index.ts';
import { writeOutput } from '../store/write-whole.ts';
import { checkFile } from '../users/transfer/whole-file.ts';
import type { CommandContext, CommandDeclaration } from './command.ts';

export const importUsers: CommandDeclaration = {
  name: 'users import <file>',
  description: 'import users from a file: a JSON array, or one user a line; password hashes are taken along',
  options: (command) =>
    void command
      .option('-c, --connection <name>', 'the database connection (needed where there are several)')
      .option('--upsert', 'change users whose e-mail address is there already'),
  run: async (
    context,
    file: string,
    { connection, upsert = false }: { connection?: string; upsert?: boolean },
  ) => {
    for await (const progress of transferOf(context, { command: 'import', connection, upsert }, file))
      printImport(context.host, progress);
  },
};

/** A file gets its name only when it is complete. */
export const exportUsers: CommandDeclaration = {
  name: 'users export',
  description: 'write the users in the form of import files, one a line',
  options: (command) =>
    void command
      .option('-o, --output <file>', 'where to (standard output otherwise)')
      .option('-c, --connection <name>', 'only those of this connection')
      .option(
        '--with-hashes',
        'with password hashes and second factors: whoever reads them may try passwords',
      ),
  run: async (
    context,
    {
      output,
      connection,
      withHashes = false,
    }: { output?: string; connection?: string; withHashes?: boolean },
  ) => {
    const { stdout } = context.host;
    const lines = linesOf(transferOf(context, { command: 'export', connection, withHashes }));
    if (output === undefined) {
      for await (const text of lines) if (!stdout.write(text)) await once(stdout, 'drain');
    } else {
      await writeOutput(output, lines);
    }
  },
};

export const account: CommandDeclaration = {
  name: 'users account <user_id>',
  description:
    'whose a user is, after a login was refused because the account at the provider may be another person’s',
  options: (command) =>
    void command
      .option('--join <id>', 'the account with this id at the provider is the user’s')
      .option(
        '--keep',
        'the account is somebody else’s, and gets a user of its own at its next login; the sessions of this user end',
      ),
  run: async ({ host, sendOrder }, user: string, options: { join?: string; keep?: boolean }) => {
    const order = { command: 'account', user, ...options } as const;
    print(host, accountReport(await sendOrder(readSettings(host.env), order)));
  },
};

/** @param file the file to import. */
async function* transferOf(
  { host, log }: CommandContext,
  transfer: Transfer,
  file?: string,
): AsyncGenerator<TransferProgress> {
  const settings = readSettings(host.env);
  if (file !== undefined) await checkFile(textOf(file));
  yield* sendOrRunTransfer(settings, transfer, { file: () => textOf(file), log });
}

/** Returns the text of a file, in parts. The file is opened when the first part is read, and closed after the last. */
async function* textOf(file: string | undefined): AsyncGenerator<string> {
  if (file !== undefined) yield* createReadStream(file, 'utf8');
}

/** Prints the counts of an import. Each user who was not imported is one JSON object on standard error. */
function printImport(host: CommandProcess, progress: TransferProgress): void {
  if ('failed' in progress) host.stderr.write(`${JSON.stringify(progress.failed)}\n`);
  if (!('counts' in progress)) return;
  const { total, inserted, updated, failed } = progress.counts;
  print(host, `${total} users: ${inserted} inserted, ${updated} updated, ${failed} failed`);
  if (failed > 0) host.exitCode = 1;
}

async function* linesOf(news: AsyncIterable<TransferProgress>): AsyncGenerator<string> {
  for await (const one of news) if ('lines' in one) yield one.lines;
}
