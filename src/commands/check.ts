// `gatehouse check`.
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { unknownLimits } from '../capabilities/protection/rate-limit.ts';
import { tlsOptions } from '../capabilities/tls/tls-options.ts';
import { createOutbound, outboundRules } from '../http/outbound/outbound.ts';
import { systemClock } from '../runtime/clock.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { sendOrder } from '../server/administration/send.ts';
import { faultText } from '../server/fault.ts';
import { outboundAllow, readSettings, type Settings } from '../settings/index.ts';
import { customDomainWarnings } from '../tenant/custom-domain-warnings.ts';
import { EXAMPLE_FILE, isFirstStart, productionFaults } from '../tenant/examples.ts';
import { type LoadedTenant, loadTenantFile, TenantFault } from '../tenant/load.ts';
import { TENANT_FILE } from '../tenant/tenant-file-settings.ts';
import { wildcardWarnings } from '../tenant/url-warnings.ts';
import type { CommandDeclaration } from './command.ts';

export const check: CommandDeclaration = {
  name: 'check',
  description: 'check the settings and the tenant file, and name every fault',
  options: withConfig,
  run: ({ host }, given: ConfigOption) => checkAll(host, configured(host, given)),
};

export interface ConfigOption {
  config?: string;
}

/** Adds the option that names the deploy tool's configuration. */
export function withConfig(command: Command): void {
  command.option(
    '--config <file>',
    "the deploy tool's config.json, with its mappings and exclusions; as TENANT_CONFIG",
  );
}

/** Returns the environment with the configuration that an option names. */
export function configured({ env }: CommandProcess, { config }: ConfigOption): CommandProcess['env'] {
  return config === undefined ? env : { ...env, TENANT_CONFIG: config };
}

/** Validates the settings and the tenant file, and prints every fault. */
async function checkAll(host: CommandProcess, env: CommandProcess['env']): Promise<void> {
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
  const loaded = await tenantOf({ ...settings, tenantFile: file, production }, host, env).catch(collectFault);
  if (settings?.tls.mode === 'files') {
    const tls = await tlsOptions(settings, systemClock).catch(collectFault);
    for (const warning of tls?.warnings ?? []) print(host, `warning: ${warning}`);
  }
  if (faults.length > 0 || loaded === undefined) throw new Error(faults.join('\n'));
  const domains = settings === undefined ? [] : customDomainWarnings(loaded.tenant, settings.baseUrl);
  for (const warning of domains.map(loaded.withPlace)) print(host, `warning: ${warning}`);
  if (settings !== undefined) await printEndings(settings, host);
  const { clients, resourceServers, connections } = loaded.tenant;
  if (settings !== undefined) await printDirectoryWarnings(settings, connections, host);
  if (isFirst) print(host, `${tenantFile} is not there: the first start writes the example`);
  const counts = [counted(clients.length, 'application'), counted(resourceServers.length, 'API')];
  print(host, `${file}: ${counts.join(', ')}, no faults`);
}

/** Prints what of an old tenant is about to end at the server that runs on the data directory, if there is one. */
async function printEndings({ dataDir }: Settings, host: CommandProcess): Promise<void> {
  const answer = await sendOrder(dataDir, { command: 'inspect' });
  for (const warning of answer?.result.endings ?? []) print(host, `warning: ${warning}`);
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
export async function tenantOf(
  settings: Pick<Settings, 'tenantFile' | 'production' | 'mail' | 'sms'>,
  host: CommandProcess,
  env = host.env,
): Promise<LoadedTenant> {
  const loaded = await loadTenantFile(settings.tenantFile, env);
  const { LIMITS } = await import('../server/features.ts');
  const { metadataFaults } = await import('../features/connections/samlp/metadata-faults.ts');
  const unknown = unknownLimits(loaded.tenant, LIMITS).map(loaded.withPlace);
  const wildcards = settings.production ? wildcardWarnings(loaded.tenant).map(loaded.withPlace) : [];
  for (const warning of [...unknown, ...wildcards, ...loaded.report]) print(host, `warning: ${warning}`);
  const faults = [
    ...metadataFaults(loaded.tenant),
    ...(settings.production ? productionFaults(loaded.tenant, settings) : []),
  ];
  if (faults.length > 0) throw new TenantFault(faults.map(loaded.withPlace));
  return loaded;
}
