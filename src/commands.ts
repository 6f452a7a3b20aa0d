// The `gatehouse` command's subcommands. What few of them need, above all the server itself, is loaded by those.
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';
import pino from 'pino';
import { addActionCommands } from './administration/action-commands.ts';
import { addAdministratorCommands } from './administration/administrator-commands.ts';
import { carryOutOrder } from './administration/order.ts';
import type { Order } from './administration/orders.ts';
import { addScriptCommands } from './administration/script-commands.ts';
import { sendTransfer } from './administration/send.ts';
import { type Transfer, type TransferNews, transferUsers } from './administration/transfer.ts';
import { fail, faultText } from './fault.ts';
import { addOperatingCommands } from './operating-commands.ts';
import { unknownLimits } from './protection/settings.ts';
import { SIGNING_ALGS, type SigningAlg } from './records/signing-algs.ts';
import { systemClock } from './runtime/clock.ts';
import { createLog } from './runtime/log.ts';
import { systemRandom } from './runtime/random.ts';
import { readSettings, type Settings } from './settings.ts';
import { TENANT_FILE } from './settings-schema.ts';
import { openStore } from './store/open.ts';
import { repair, reseal, resetSecrets } from './store-commands.ts';
import { EXAMPLE_FILE, isFirstStart, productionFaults } from './tenant/examples.ts';
import { NOT_HELD } from './tenant/export.ts';
import { type LoadedTenant, loadTenantFile, TenantFault } from './tenant/load.ts';
import { tlsOptions } from './tls/options.ts';
import { alone, checkFile } from './users/transfer/whole-file.ts';

/** Logs to standard error: standard output is for the command's result. */
const log = createLog(process.env.LOG_LEVEL, pino.destination({ dest: 2, sync: true }));
const start = async () => (await import('./run.ts')).runServer(process.env, process.stdout);

/** Has an order carried out: by the server that runs on the data directory, by this process where none does. */
const ordered = (settings: Settings, order: Order) => carryOutOrder(settings, order, log);

/** Validates the settings and the tenant file. */
async function check(): Promise<void> {
  const tenantFile = process.env.TENANT_FILE || TENANT_FILE;
  const wrong: string[] = [];
  const reported = (thrown: unknown) => {
    wrong.push(faultText(thrown));
    return undefined;
  };
  const settings = await (async () => readSettings(process.env))().catch(reported);
  const production = settings?.production ?? false;
  const isFirst = isFirstStart({ tenantFile, production }, process.env);
  const file = isFirst ? fileURLToPath(EXAMPLE_FILE) : tenantFile;
  const loaded = await tenantOf({ ...settings, tenantFile: file, production }).catch(reported);
  if (settings?.tls.mode === 'files') {
    const tls = await tlsOptions(settings, systemClock).catch(reported);
    for (const warning of tls?.warnings ?? []) console.log(`warning: ${warning}`);
  }
  if (wrong.length > 0 || loaded === undefined) throw new Error(wrong.join('\n'));
  const { clients, resourceServers } = loaded.tenant;
  if (isFirst) console.log(`${tenantFile} is not there: the first start writes the example`);
  console.log(`${file}: ${clients.length} applications, ${resourceServers.length} APIs, no faults`);
}

/** Loads the tenant file, checked for production where needed; logs its warnings. @throws TenantFault */
async function tenantOf(
  settings: Pick<Settings, 'tenantFile' | 'production' | 'mail' | 'sms'>,
): Promise<LoadedTenant> {
  const loaded = await loadTenantFile(settings.tenantFile, process.env);
  const { LIMITS } = await import('./features.ts');
  const { metadataFaults } = await import('./connections/samlp/metadata-faults.ts');
  const unknown = unknownLimits(loaded.tenant, LIMITS).map(loaded.place);
  for (const warning of [...loaded.warnings, ...unknown]) console.log(`warning: ${warning}`);
  const faults = [
    ...metadataFaults(loaded.tenant),
    ...(settings.production ? productionFaults(loaded.tenant, settings) : []),
  ];
  if (faults.length > 0) throw new TenantFault(faults.map(loaded.place));
  return loaded;
}

async function changes(command: 'apply' | 'plan'): Promise<number> {
  const settings = readSettings(process.env);
  const { tenant } = await tenantOf(settings);
  const lines = (await ordered(settings, { command, tenant })) as string[];
  for (const line of lines) console.log(line);
  const { tenantFile } = settings;
  const count = `${lines.length} ${lines.length === 1 ? 'change' : 'changes'}`;
  if (lines.length === 0) console.log(`${tenantFile}: no changes`);
  else console.log(command === 'apply' ? `applied ${tenantFile}: ${count}` : `${tenantFile}: ${count}`);
  return lines.length;
}

async function apply(): Promise<void> {
  await changes('apply');
}

/** What `apply` would change; a script learns by the exit code whether there is anything. */
async function plan(): Promise<void> {
  if ((await changes('plan')) > 0) process.exitCode = 2;
}

async function exportTo({ output }: { output?: string }): Promise<void> {
  const yaml = String(await ordered(readSettings(process.env), { command: 'export' }));
  for (const line of yaml.split('\n'))
    if (line.startsWith(NOT_HELD)) console.error(`warning: ${line.slice(2)}`);
  if (output === undefined) process.stdout.write(yaml);
  else await writeFile(output, yaml, { mode: 0o600 });
}

async function rotate({ alg }: { alg?: SigningAlg }): Promise<void> {
  const kid = await ordered(readSettings(process.env), { command: 'rotate', ...(alg && { alg }) });
  console.log(`from now on tokens are signed with ${kid}`);
}

/** Takes users in or out: by the server that runs on the data directory, by this process where none does. */
async function* transferred(transfer: Transfer, file?: string): AsyncGenerator<TransferNews> {
  const settings = readSettings(process.env);
  const read = () => (file === undefined ? Readable.from([]) : createReadStream(file, 'utf8'));
  if (file !== undefined) await checkFile(read());
  const answered = await sendTransfer(settings.dataDir, transfer, read());
  if (answered !== undefined) return yield* answered;
  const { dataDir, databaseUrl, secretsKey } = settings;
  const store = await openStore({ dataDir, databaseUrl, secretsKey, clock: systemClock, log });
  try {
    const endSessions = async (userId: string) => {
      await store.collection('artifacts').deleteBy('account', userId);
    };
    const deps = { store, clock: systemClock, random: systemRandom, endSessions, between: alone };
    yield* transferUsers(deps, transfer, read());
  } finally {
    await store.close();
  }
}

/** Imports users from a file; who was not imported is told on standard error, one JSON object a line. */
async function importUsers(
  file: string,
  { connection, upsert = false }: { connection?: string; upsert?: boolean },
) {
  for await (const news of transferred({ command: 'import', connection, upsert }, file)) {
    if ('failed' in news) console.error(JSON.stringify(news.failed));
    if (!('counts' in news)) continue;
    const { total, inserted, updated, failed } = news.counts;
    console.log(`${total} users: ${inserted} inserted, ${updated} updated, ${failed} failed`);
    if (failed > 0) process.exitCode = 1;
  }
}

/** Writes users in the form of import files, one a line. */
async function exportUsersTo(options: { output?: string; connection?: string; withHashes?: boolean }) {
  const { output, connection, withHashes = false } = options;
  const target = output === undefined ? process.stdout : createWriteStream(output, { mode: 0o600 });
  for await (const news of transferred({ command: 'export', connection, withHashes })) {
    if ('lines' in news && !target.write(news.lines)) await once(target, 'drain');
  }
  if (output === undefined) return;
  target.end();
  await once(target, 'finish');
}

const program = new Command('gatehouse')
  .description('A self-hosted identity server. Settings come from the environment: see docs/operating.md.')
  .action(start);
program.command('start').description('start the server (the default)').action(start);
program
  .command('check')
  .description('check the settings and the tenant file, and name every fault')
  .action(check);
addOperatingCommands(program, log, console.log);
program.command('apply').description('make the tenant in the store equal to the tenant file').action(apply);
program
  .command('plan')
  .description('print what apply would change; the exit code is 2 where that is anything')
  .action(plan);
program
  .command('export')
  .description('write the tenant in the store as a tenant file')
  .option('-o, --output <file>', 'where to (standard output otherwise)')
  .action(exportTo);
program
  .command('repair')
  .description('give up what is damaged or missing in the store, and keep the rest; backups are better')
  .action(repair);
const users = program.command('users').description('the users in the store, of a running server or of none');
users
  .command('import <file>')
  .description('import users from a file: a JSON array, or one user a line; password hashes are taken along')
  .option('-c, --connection <name>', 'the database connection (needed where there are several)')
  .option('--upsert', 'change users whose e-mail address is there already')
  .action(importUsers);
users
  .command('export')
  .description('write the users in the form of import files, one a line')
  .option('-o, --output <file>', 'where to (standard output otherwise)')
  .option('-c, --connection <name>', 'only those of this connection')
  .option('--with-hashes', 'with password hashes and second factors: whoever reads them may try passwords')
  .action(exportUsersTo);
const keys = program
  .command('keys')
  .description('signing keys, and the key that the secrets in the store are sealed with');
keys
  .command('rotate')
  .description('sign with the next keys from now on')
  .addOption(new Option('--alg <alg>', 'only with those of this algorithm').choices(SIGNING_ALGS))
  .action(rotate);
keys
  .command('reseal')
  .description('seal the secrets in the store with SECRETS_KEY, or with a new key in keys/secrets.key')
  .action(reseal);
keys
  .command('reset')
  .alias('reset-authenticators')
  .description('when the key of the store is lost for good: remove the secrets that it sealed')
  .action(resetSecrets);

addAdministratorCommands(program, ordered);
addScriptCommands(program, ordered);
addActionCommands(program, ordered);

try {
  await program.parseAsync();
} catch (thrown) {
  fail(thrown);
}
