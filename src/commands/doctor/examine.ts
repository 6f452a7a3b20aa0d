// `gatehouse doctor`: checks everything that a server depends on, and reports each check in one line.
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { unknownLimits } from '../../capabilities/protection/rate-limit.ts';
import { placeOf } from '../../capabilities/signing/signing-settings.ts';
import { metadataFaults } from '../../features/connections/samlp/metadata-faults.ts';
import { createOutbound, type Outbound, outboundRules } from '../../http/outbound/outbound.ts';
import type { TenantFile } from '../../records/tenant/tenant.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { sendOrRunOrder } from '../../server/administration/carry-out.ts';
import type { Inspection } from '../../server/administration/inspect.ts';
import { faultText } from '../../server/fault.ts';
import { LIMITS } from '../../server/features.ts';
import { outboundAllow, readSettings, type Settings, SettingsFault } from '../../settings/index.ts';
import { StoreAbsent } from '../../store/contract.ts';
import { keyFile } from '../../store/sealing/key.ts';
import { EXAMPLE_FILE, isFirstStart, productionFaults } from '../../tenant/examples.ts';
import { loadTenantFile, parseTenant, TenantFault } from '../../tenant/load.ts';
import { checkCertificateFiles, checkServedCertificate } from './certificates.ts';
import { checkDirectories } from './directories.ts';
import { clockFinding, DAY_MS, type Finding, findings, messageOf } from './finding.ts';
import { countOutbox, hardeningFindings } from './hardening/hardening.ts';
import { checkMail, checkSms } from './messages.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const settingsFindings = findings('settings');
const tenantFindings = findings('tenant file');

interface Examination {
  env: Environment;
  /** The log of the store, where no server has it open. */
  log: Logger;
  /** Whether to go through the hardening checklist outside production, too. */
  hardening: boolean;
  clock?: Clock;
}

/** Runs all checks, and yields each finding as soon as it is known. Nothing is changed. */
export async function* examine({
  env,
  log,
  hardening,
  clock = systemClock,
}: Examination): AsyncGenerator<Finding> {
  const settings = settingsOf(env);
  if ('faults' in settings) {
    yield* settings.faults.map((one) => settingsFindings.fault(one));
    return;
  }
  yield settingsFindings.ok(`for ${settings.baseUrl}${settings.production ? '' : ', not for production'}`);
  const { tenant, findings: fileFindings } = await checkTenantFile(settings, env);
  yield* fileFindings;
  yield* await checkCertificateFiles(settings, clock);
  yield* await checkServedCertificate(settings, clock);
  yield await checkDisk(settings);
  const permissionFinding = await checkPermissions(settings);
  yield permissionFinding;
  const { findings: storeFindings, inspection } = await checkStore(settings, log);
  yield* storeFindings;
  if (inspection !== undefined) yield* inspectionFindings(inspection, clock);
  yield await checkMail(settings);
  const outbound = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  yield await checkSms(settings, outbound);
  yield* await checkDirectories(tenant?.connections ?? [], { outbound, clock });
  yield* await checkExternalHosts({ settings, outbound }, inspection?.addresses ?? [], clock);
  if (!settings.production && !hardening) {
    yield hardeningFinding.ok('the checklist is for production: --hardening goes through it here, too');
    return;
  }
  const inForce = inspection === undefined ? tenant : await storedTenant(settings, log);
  if (inForce === undefined) {
    yield hardeningFinding.warning('the checklist needs a tenant file without faults');
    return;
  }
  yield* hardeningFindings({
    settings,
    env,
    tenant: inForce,
    inspection,
    readableByOthers: permissionFinding.verdict === 'ok' ? undefined : permissionFinding.text,
    outboxFiles: await countOutbox(settings.dataDir),
    uid: process.getuid?.(),
    now: clock(),
  });
}

const hardeningFinding = findings('hardening');

/** Returns the tenant in the store, as `gatehouse export` writes it; undefined if it does not pass for a tenant file. */
async function storedTenant(settings: Settings, log: Logger): Promise<TenantFile | undefined> {
  const yaml = await sendOrRunOrder(settings, { command: 'export' }, log);
  try {
    return parseTenant(yaml, {}).tenant;
  } catch (thrown) {
    if (thrown instanceof TenantFault) return undefined;
    throw thrown;
  }
}

function settingsOf(env: Environment): Settings | { faults: readonly string[] } {
  try {
    return readSettings(env);
  } catch (thrown) {
    return { faults: thrown instanceof SettingsFault ? thrown.faults : [messageOf(thrown)] };
  }
}

async function checkTenantFile(
  settings: Settings,
  env: Environment,
): Promise<{ tenant?: TenantFile; findings: Finding[] }> {
  const { tenantFile } = settings;
  if (isFirstStart(settings, env))
    return {
      tenant: (await loadTenantFile(fileURLToPath(EXAMPLE_FILE), env)).tenant,
      findings: [tenantFindings.ok(`${tenantFile} is not there: the first start writes the example`)],
    };
  try {
    const { tenant, report, withPlace } = await loadTenantFile(tenantFile, env);
    const faults = [
      ...metadataFaults(tenant),
      ...(settings.production ? productionFaults(tenant, settings) : []),
    ];
    if (faults.length > 0) return { findings: faults.map((one) => tenantFindings.fault(withPlace(one))) };
    const texts = [...unknownLimits(tenant, LIMITS).map(withPlace), ...report];
    const none = [tenantFindings.ok(`${tenantFile} has no faults`)];
    return { tenant, findings: texts.length > 0 ? texts.map((one) => tenantFindings.warning(one)) : none };
  } catch (thrown) {
    const faults = thrown instanceof TenantFault ? thrown.faults : [faultText(thrown)];
    return { findings: faults.map((one) => tenantFindings.fault(one)) };
  }
}

// Checks the machine: space on the disk, and who can read the data.

const MIB = 1 << 20;
/** Free space, bytes. Below `fault` the store will soon be unable to write. */
const MIN_FREE_BYTES = { fault: 100 * MIB, warning: 1024 * MIB };

const disk = findings('disk');
const permissions = findings('permissions');

/** Checks the free space where the data directory is, or will be. */
async function checkDisk({ dataDir }: Pick<Settings, 'dataDir'>): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(await existingDirectory(dataDir));
    const free = bavail * bsize;
    const text = `${Math.floor(free / MIB)} MiB are free where ${dataDir} is`;
    if (free < MIN_FREE_BYTES.fault) return disk.fault(`${text}: the store needs room to write`);
    return free < MIN_FREE_BYTES.warning ? disk.warning(text) : disk.ok(text);
  } catch (thrown) {
    return disk.fault(`the disk of ${dataDir} cannot be asked: ${messageOf(thrown)}`);
  }
}

/** Returns a directory, or the nearest one above it that exists. */
async function existingDirectory(directory: string): Promise<string> {
  try {
    await stat(directory);
    return directory;
  } catch (thrown) {
    const parent = dirname(directory);
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT' || parent === directory) throw thrown;
    return existingDirectory(parent);
  }
}

/** Checks whether other users of the machine can read secrets. */
async function checkPermissions({ dataDir, secretsKey }: Settings): Promise<Finding> {
  if (process.platform === 'win32') return permissions.ok('Windows has none that could be read here');
  const keyMode = secretsKey === undefined ? await modeForOthers(keyFile(dataDir)) : undefined;
  if (keyMode !== undefined)
    return permissions.fault(`${keyFile(dataDir)} can be read by others (${keyMode}): chmod 600 it`);
  const directoryMode = await modeForOthers(dataDir);
  if (directoryMode !== undefined)
    return permissions.warning(`${dataDir} can be looked into by others (${directoryMode}): chmod 700 it`);
  return permissions.ok(`${dataDir} is its owner's alone`);
}

/** Returns the mode of a file that users other than its owner can open; otherwise undefined. */
async function modeForOthers(path: string): Promise<string | undefined> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined || (stats.mode & 0o077) === 0 ? undefined : (stats.mode & 0o777).toString(8);
}

// Checks the store, through the running server, or opened here where none runs.

/** Age of a signing key above which a rotation is due. Keys are changed a few times a year. */
const OLD_KEY_MS = 180 * DAY_MS;
/** Clocks of machines that write to one store must not differ by more, milliseconds. */
const MAX_SKEW_MS = 60_000;

const database = findings('database');
const keys = findings('signing keys');
const clocks = findings('clock');
const streams = findings('log streams');
const moving = findings('moving in');

/** Opens and inspects the store; `inspection` is undefined where there is no store, or it does not answer. */
async function checkStore(
  settings: Settings,
  log: Logger,
): Promise<{ findings: Finding[]; inspection?: Inspection }> {
  const location = settings.databaseUrl === undefined ? `the store in ${settings.dataDir}` : 'DATABASE_URL';
  try {
    const inspection = await sendOrRunOrder(settings, { command: 'inspect' }, log);
    return { findings: [database.ok(`${location} can be read and written`)], inspection };
  } catch (thrown) {
    if (thrown instanceof StoreAbsent)
      return { findings: [database.ok(`${thrown.message} yet: the first start makes it`)] };
    return { findings: [database.fault(`${location}: ${messageOf(thrown)}`)] };
  }
}

export function inspectionFindings(
  { signingKeys, newestEvent, clockAhead, suspendedStreams, endings }: Inspection,
  clock: Clock,
): Finding[] {
  return [
    ...signingKeys.map(({ alg, signsSince }) => {
      const age = clock() - signsSince * 1000;
      const text = `${alg}: ${Math.floor(Math.max(0, age) / DAY_MS)} days old`;
      return age > OLD_KEY_MS ? keys.warning(`${text}: gatehouse keys rotate`) : keys.ok(text);
    }),
    ...endings.map((text) => moving.warning(text)),
    newestEvent !== undefined && Date.parse(newestEvent) - clock() > MAX_SKEW_MS
      ? clocks.fault(
          `the log has an event of ${newestEvent}, and here it is ${new Date(clock()).toISOString()}`,
        )
      : clocks.ok('nothing in the store is of the future'),
    ...(clockAhead === undefined ? [] : [clockFinding(clockAhead, 'the database')]),
    ...suspendedStreams.map((name) =>
      streams.warning(`${name} is suspended: set it to active once its receiver answers`),
    ),
  ];
}

// Checks addresses outside: whether they answer, and the time there.

/** How many addresses are requested at once. */
const CONCURRENCY = 8;
/** Most addresses; longer lists are hardly read. */
const MAX_HOSTS = 200;
const TIMEOUT_MS = 5_000;
const hosts = findings('outside');

type Address = Inspection['addresses'][number];

/** Requests the root of each host once. Any answer counts as success. */
async function checkExternalHosts(
  { settings, outbound }: { settings: Pick<Settings, 'signing'>; outbound: Outbound },
  addresses: readonly Address[],
  clock: Clock,
): Promise<Finding[]> {
  const { address: of = '' } = placeOf(settings.signing);
  const url = settings.signing.variables[of];
  const signing = typeof url === 'string' ? [{ of, url }] : [];
  const remaining = distinctHosts([...signing, ...addresses]).slice(0, MAX_HOSTS);
  const hostFindings: Finding[] = [];
  const skews: number[] = [];
  const work = async () => {
    for (let address = remaining.shift(); address !== undefined; address = remaining.shift()) {
      const { finding, skew } = await checkHost(outbound, address, clock);
      hostFindings.push(finding);
      if (skew !== undefined) skews.push(skew);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return [...hostFindings, ...clockFindings(skews)];
}

function distinctHosts(addresses: readonly Address[]): Address[] {
  const byOrigin = new Map<string, Address>();
  for (const one of addresses) {
    const origin = URL.parse(one.url)?.origin;
    if (origin !== undefined && !byOrigin.has(origin)) byOrigin.set(origin, { ...one, url: `${origin}/` });
  }
  return [...byOrigin.values()];
}

async function checkHost(
  outbound: Pick<Outbound, 'fetch'>,
  { of, url }: Address,
  clock: Clock,
): Promise<{ finding: Finding; skew?: number }> {
  const { host } = new URL(url);
  try {
    const { headers } = await outbound.fetch(url, {
      redirect: 'manual',
      timeout: TIMEOUT_MS,
      headOnly: true,
    });
    const serverTime = Date.parse(headers.get('date') ?? '');
    const skew = Number.isNaN(serverTime) ? {} : { skew: clock() - serverTime };
    return { finding: hosts.ok(`${host} answers (${of})`), ...skew };
  } catch (thrown) {
    return { finding: hosts.warning(`${host} does not (${of}): ${messageOf(thrown)}`) };
  }
}

/** Compares with the median: a single host may have a wrong clock. */
function clockFindings(skews: readonly number[]): Finding[] {
  const median = [...skews].sort((a, b) => a - b)[Math.floor(skews.length / 2)];
  return median === undefined ? [] : [clockFinding(median, 'the hosts that were asked')];
}
