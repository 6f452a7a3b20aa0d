// `gatehouse doctor`: checks everything that a server depends on, and reports each check in one line.
import type { Logger } from 'pino';
import { unknownLimits } from '../../capabilities/protection/settings.ts';
import { metadataFaults } from '../../features/connections/samlp/metadata-faults.ts';
import { createOutbound } from '../../http/outbound.ts';
import { outboundRules } from '../../http/outbound-rules.ts';
import type { TenantFile } from '../../records/tenant.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { faultText } from '../../server/fault.ts';
import { LIMITS } from '../../server/features.ts';
import { outboundAllow, readSettings, type Settings, SettingsFault } from '../../settings/settings.ts';
import { isFirstStart, productionFaults } from '../../tenant/examples.ts';
import { loadTenantFile, TenantFault } from '../../tenant/load.ts';
import { checkCertificateFiles, checkServedCertificate } from './certificates.ts';
import { checkDirectories } from './directories.ts';
import { checkExternalHosts } from './external-hosts.ts';
import { type Finding, findings, messageOf } from './finding.ts';
import { checkDisk, checkPermissions } from './machine.ts';
import { checkMail, checkSms } from './messages.ts';
import { checkStore, inspectionFindings } from './store.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const settingsFindings = findings('settings');
const tenantFindings = findings('tenant file');

/**
 * Runs all checks, and yields each finding as soon as it is known. Nothing is changed.
 * @param log the log of the store, where no server has it open.
 */
export async function* examine(
  env: Environment,
  log: Logger,
  clock: Clock = systemClock,
): AsyncGenerator<Finding> {
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
  yield await checkPermissions(settings);
  const { findings: storeFindings, inspection } = await checkStore(settings, log);
  yield* storeFindings;
  if (inspection !== undefined) yield* inspectionFindings(inspection, clock);
  yield await checkMail(settings);
  const outbound = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  yield await checkSms(settings, outbound);
  yield* await checkDirectories(tenant?.connections ?? [], { outbound, clock });
  yield* await checkExternalHosts({ settings, outbound }, inspection?.addresses ?? [], clock);
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
      findings: [tenantFindings.ok(`${tenantFile} is not there: the first start writes the example`)],
    };
  try {
    const { tenant, warnings, withPlace } = await loadTenantFile(tenantFile, env);
    const faults = [
      ...metadataFaults(tenant),
      ...(settings.production ? productionFaults(tenant, settings) : []),
    ];
    if (faults.length > 0) return { findings: faults.map((one) => tenantFindings.fault(withPlace(one))) };
    const texts = [...warnings, ...unknownLimits(tenant, LIMITS).map(withPlace)];
    const none = [tenantFindings.ok(`${tenantFile} has no faults`)];
    return { tenant, findings: texts.length > 0 ? texts.map((one) => tenantFindings.warning(one)) : none };
  } catch (thrown) {
    const faults = thrown instanceof TenantFault ? thrown.faults : [faultText(thrown)];
    return { findings: faults.map((one) => tenantFindings.fault(one)) };
  }
}
