// Commands about the tenant file: check it, apply it to the store, and export the store as one.
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { unknownLimits } from '../capabilities/protection/rate-limit.ts';
import { tlsOptions } from '../capabilities/tls/options.ts';
import { createOutbound, outboundRules } from '../http/outbound.ts';
import { systemClock } from '../runtime/clock.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import type { SendOrder } from '../server/administration/orders.ts';
import { faultText } from '../server/fault.ts';
import { outboundAllow, readSettings, type Settings } from '../settings/index.ts';
import { writeOutput } from '../store/write-whole.ts';
import { customDomainWarnings } from '../tenant/custom-domain-warnings.ts';
import { EXAMPLE_FILE, isFirstStart, productionFaults } from '../tenant/examples.ts';
import { NOT_HELD } from '../tenant/export.ts';
import { type LoadedTenant, loadTenantFile, TenantFault } from '../tenant/load.ts';
import { TENANT_FILE } from '../tenant/settings.ts';

/** Adds `check`, `apply`, `plan` and `export`. */
export function addTenantCommands(program: Command, host: CommandProcess, ordered: SendOrder): void {
  program
    .command('check')
    .description('check the settings and the tenant file, and name every fault')
    .action(() => check(host));
  program
    .command('apply')
    .description('make the tenant in the store equal to the tenant file')
    .action(async () => void (await changes('apply', host, ordered)));
  program
    .command('plan')
    .description('print what apply would change; the exit code is 2 where that is anything')
    .action(async () => {
      if ((await changes('plan', host, ordered)) > 0) host.exitCode = 2;
    });
  program
    .command('export')
    .description('write the tenant in the store as a tenant file')
    .option('-o, --output <file>', 'where to (standard output otherwise)')
    .action((options: { output?: string }) => exportTo(options, host, ordered));
}

/** Validates the settings and the tenant file, and prints every fault. */
async function check(host: CommandProcess): Promise<void> {
  const { env } = host;
  const tenantFile = env.TENANT_FILE || TENANT_FILE;
  const faults: string[] = [];
  const collectFault = (thrown: unknown) => {
    faults.push(faultText(thrown));
    return undefined;
  };
  const settings = await (async () => readSettings(env))().catch(collectFault);
  const production = settings?.production ?? false;
  const isFirst = isFirstStart({ tenantFile, production }, env);
  const file = isFirst ? fileURLToPath(EXAMPLE_FILE) : tenantFile;
  const loaded = await tenantOf({ ...settings, tenantFile: file, production }, host).catch(collectFault);
  if (settings?.tls.mode === 'files') {
    const tls = await tlsOptions(settings, systemClock).catch(collectFault);
    for (const warning of tls?.warnings ?? []) print(host, `warning: ${warning}`);
  }
  if (faults.length > 0 || loaded === undefined) throw new Error(faults.join('\n'));
  const domains = settings === undefined ? [] : customDomainWarnings(loaded.tenant, settings.baseUrl);
  for (const warning of domains.map(loaded.withPlace)) print(host, `warning: ${warning}`);
  const { clients, resourceServers, connections } = loaded.tenant;
  if (settings !== undefined) await printDirectoryWarnings(settings, connections, host);
  if (isFirst) print(host, `${tenantFile} is not there: the first start writes the example`);
  const counts = [counted(clients.length, 'application'), counted(resourceServers.length, 'API')];
  print(host, `${file}: ${counts.join(', ')}, no faults`);
}

/** Prints what is unsafe about directories. Whether they answer is for the doctor: a file is checked elsewhere, too. */
async function printDirectoryWarnings(
  settings: Settings,
  connections: LoadedTenant['tenant']['connections'],
  host: CommandProcess,
): Promise<void> {
  const { isDirectory } = await import('../features/connections/ldap/nameless.ts');
  if (!connections.some(isDirectory)) return;
  const { checkDirectories } = await import('./doctor/directories.ts');
  const outbound = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  for (const { verdict, text } of await checkDirectories(connections, { outbound, clock: systemClock }))
    if (verdict === 'warning') print(host, `warning: ${text}`);
}

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Loads the tenant file, checked for production where needed; prints its warnings. @throws TenantFault */
async function tenantOf(
  settings: Pick<Settings, 'tenantFile' | 'production' | 'mail' | 'sms'>,
  host: CommandProcess,
): Promise<LoadedTenant> {
  const loaded = await loadTenantFile(settings.tenantFile, host.env);
  const { LIMITS } = await import('../server/features.ts');
  const { metadataFaults } = await import('../features/connections/samlp/metadata-faults.ts');
  const unknown = unknownLimits(loaded.tenant, LIMITS).map(loaded.withPlace);
  for (const warning of [...loaded.warnings, ...unknown]) print(host, `warning: ${warning}`);
  const faults = [
    ...metadataFaults(loaded.tenant),
    ...(settings.production ? productionFaults(loaded.tenant, settings) : []),
  ];
  if (faults.length > 0) throw new TenantFault(faults.map(loaded.withPlace));
  return loaded;
}

/** Applies the tenant file, or with `plan` only prints what would change. @returns the number of changes. */
async function changes(command: 'apply' | 'plan', host: CommandProcess, ordered: SendOrder): Promise<number> {
  const settings = readSettings(host.env);
  const { tenant } = await tenantOf(settings, host);
  const lines = (await ordered(settings, { command, tenant })) as string[];
  for (const line of lines) print(host, line);
  const { tenantFile } = settings;
  const count = `${lines.length} ${lines.length === 1 ? 'change' : 'changes'}`;
  if (lines.length === 0) print(host, `${tenantFile}: no changes`);
  else print(host, command === 'apply' ? `applied ${tenantFile}: ${count}` : `${tenantFile}: ${count}`);
  return lines.length;
}

async function exportTo(
  { output }: { output?: string },
  { env, stdout, stderr }: CommandProcess,
  ordered: SendOrder,
): Promise<void> {
  const yaml = String(await ordered(readSettings(env), { command: 'export' }));
  for (const line of yaml.split('\n'))
    if (line.startsWith(NOT_HELD)) stderr.write(`warning: ${line.slice(2)}\n`);
  if (output === undefined) stdout.write(yaml);
  else await writeOutput(output, [yaml]);
}
