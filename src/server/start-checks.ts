// The checks before a server serves: the tenant file, the store, and whether both are fit for production.
import { join } from 'node:path';
import type { Logger } from 'pino';
import { unknownLimits } from '../capabilities/protection/rate-limit.ts';
import { metadataFaults } from '../features/connections/samlp/metadata-faults.ts';
import { EXAMPLE_ADMINISTRATOR, isExampleOpen } from '../features/console/administrators/example.ts';
import type { Settings } from '../settings/index.ts';
import { isForThisMachine } from '../settings/server.ts';
import type { Store } from '../store/contract.ts';
import { exampleRemains, productionFaults } from '../tenant/examples.ts';
import { type LoadedTenant, TenantFault } from '../tenant/load.ts';
import { wildcardWarnings } from '../tenant/url-warnings.ts';
import { LIMITS } from './features.ts';
import type { TenantDependencies } from './parts.ts';

/**
 * Logs the warnings about a tenant file, and about settings that production would refuse.
 * @throws TenantFault naming every fault of the file, where it has any.
 */
export function checkFile(settings: Settings, loaded: LoadedTenant, log: Logger): void {
  const faults = [
    ...metadataFaults(loaded.tenant),
    ...(settings.production ? productionFaults(loaded.tenant, settings) : []),
  ];
  if (faults.length > 0) throw new TenantFault(faults.map(loaded.withPlace));
  const unknown = unknownLimits(loaded.tenant, LIMITS).map(loaded.withPlace);
  const wildcards = settings.production ? wildcardWarnings(loaded.tenant).map(loaded.withPlace) : [];
  for (const warning of [...unknown, ...wildcards, ...loaded.report])
    log.warn({ file: settings.tenantFile }, warning);
  if (!settings.production && !isForThisMachine(settings)) {
    warnOfMissingPages(settings, log);
    for (const fault of productionFaults(loaded.tenant, settings)) {
      log.warn(`NODE_ENV=production would refuse this: ${loaded.withPlace(fault)}`);
    }
  }
}

/** Logs why the development pages are not served, and where messages without a provider are written. */
function warnOfMissingPages({ baseUrl, dataDir, mail, sms }: Settings, log: Logger): void {
  const outbox = mail === undefined || sms === undefined ? { outbox: join(dataDir, 'outbox') } : {};
  log.warn(
    { baseUrl, ...outbox },
    'the development pages are not served: BASE_URL is not an address of this machine (such as https://localhost:3000), and others would read the codes sent to everybody; messages without a provider are files in the outbox directory; for a server that others reach set NODE_ENV=production',
  );
}

/** Returns what is left of the example in a store, one sentence each. Production refuses a store with any of it. */
export async function exampleLeft(
  store: Store,
  { users, administrators }: Pick<TenantDependencies, 'users' | 'administrators'>,
): Promise<string[]> {
  const found = await exampleRemains(store, users);
  if (await isExampleOpen(administrators))
    found.push(
      `${EXAMPLE_ADMINISTRATOR.email} has the example's password: use a DATA_DIR that never served development`,
    );
  return found;
}

/**
 * @param why the predicate of the message's first line, after the name of the store.
 * @throws Error naming each fault, where there are any.
 */
export function refuseStore({ dataDir }: Settings, why: string, faults: readonly string[]): void {
  if (faults.length === 0) return;
  throw new Error([`The store in ${dataDir} ${why}:`, ...faults.map((one) => `  - ${one}`)].join('\n'));
}
