// Commands about users: import, export, and whose a user is.
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { systemClock } from '../runtime/clock.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { systemRandom } from '../runtime/secrets.ts';
import { type AccountState, accountReport } from '../server/administration/account.ts';
import { endAccessIn } from '../server/administration/end-access.ts';
import type { SendOrder } from '../server/administration/orders.ts';
import { sendTransfer } from '../server/administration/send.ts';
import { type Transfer, type TransferProgress, transferUsers } from '../server/administration/transfer.ts';
import { readSettings } from '../settings/index.ts';
import { openStore } from '../store/open.ts';
import { writeOutput } from '../store/write-whole.ts';
import { checkFile, withoutPauses } from '../users/transfer/whole-file.ts';

/** Imports or exports users; `file` is the file to import. */
type UserTransfer = (transfer: Transfer, file?: string) => AsyncGenerator<TransferProgress>;

interface ExportOptions {
  output?: string;
  connection?: string;
  withHashes?: boolean;
}

/** Adds the commands. @param log the log of the store, where this process opens it. */
export function addUserCommands(
  program: Command,
  host: CommandProcess,
  { log, sendOrder }: { log: Logger; sendOrder: SendOrder },
): void {
  const runTransfer: UserTransfer = (transfer, file) => transferOf(host, { log, transfer, file });
  const users = program
    .command('users')
    .description('the users in the store, of a running server or of none');
  users
    .command('import <file>')
    .description(
      'import users from a file: a JSON array, or one user a line; password hashes are taken along',
    )
    .option('-c, --connection <name>', 'the database connection (needed where there are several)')
    .option('--upsert', 'change users whose e-mail address is there already')
    .action(
      async (file: string, { connection, upsert = false }: { connection?: string; upsert?: boolean }) => {
        for await (const progress of runTransfer({ command: 'import', connection, upsert }, file))
          printImport(host, progress);
      },
    );
  users
    .command('export')
    .description('write the users in the form of import files, one a line')
    .option('-o, --output <file>', 'where to (standard output otherwise)')
    .option('-c, --connection <name>', 'only those of this connection')
    .option('--with-hashes', 'with password hashes and second factors: whoever reads them may try passwords')
    .action((options: ExportOptions) => exportUsers(options, host, runTransfer));
  users
    .command('account <user_id>')
    .description(
      'whose a user is, after a login was refused because the account at the provider may be another person’s',
    )
    .option('--join <id>', 'the account with this id at the provider is the user’s')
    .option(
      '--keep',
      'the account is somebody else’s, and gets a user of its own at its next login; the sessions of this user end',
    )
    .action(async (user: string, options: { join?: string; keep?: boolean }) => {
      const order = { command: 'account', user, ...options } as const;
      const state = (await sendOrder(readSettings(host.env), order)) as AccountState;
      print(host, accountReport(state));
    });
}

/** Imports or exports users: through the server that runs on the data directory, otherwise in this process. */
async function* transferOf(
  { env }: CommandProcess,
  { log, transfer, file }: { log: Logger; transfer: Transfer; file: string | undefined },
): AsyncGenerator<TransferProgress> {
  const settings = readSettings(env);
  if (file !== undefined) await checkFile(textOf(file));
  const answered = await sendTransfer(settings.dataDir, transfer, textOf(file));
  if (answered !== undefined) return yield* answered;
  const { dataDir, databaseUrl, secretsKey } = settings;
  const store = await openStore({
    dataDir,
    databaseUrl,
    secretsKey,
    clock: systemClock,
    log,
    mustBeThere: true,
  });
  try {
    const endSessions = endAccessIn(store, systemClock);
    const deps = { store, clock: systemClock, random: systemRandom, endSessions, between: withoutPauses };
    yield* transferUsers(deps, transfer, textOf(file));
  } finally {
    await store.close();
  }
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

/** Writes users in the form of import files, one a line. A file gets its name only when it is complete. */
async function exportUsers(
  options: ExportOptions,
  { stdout }: CommandProcess,
  runTransfer: UserTransfer,
): Promise<void> {
  const { output, connection, withHashes = false } = options;
  const lines = linesOf(runTransfer({ command: 'export', connection, withHashes }));
  if (output === undefined) {
    for await (const text of lines) if (!stdout.write(text)) await once(stdout, 'drain');
  } else {
    await writeOutput(output, lines);
  }
}

async function* linesOf(news: AsyncIterable<TransferProgress>): AsyncGenerator<string> {
  for await (const one of news) if ('lines' in one) yield one.lines;
}
