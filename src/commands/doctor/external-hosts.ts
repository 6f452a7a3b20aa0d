// Checks addresses outside: whether they answer, and the time there.

import type { Outbound } from '../../http/outbound.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Inspection } from '../../server/administration/inspect.ts';
import type { Settings } from '../../settings/settings.ts';
import { clockFinding, type Finding, findings, messageOf } from './finding.ts';

/** How many addresses are requested at once. */
const CONCURRENCY = 8;
/** Most addresses; longer lists are hardly read. */
const MAX_HOSTS = 200;
const TIMEOUT_MS = 5_000;
const hosts = findings('outside');

type Address = Inspection['addresses'][number];

/** Requests the root of each host once. Any answer counts as success. */
export async function checkExternalHosts(
  { settings, outbound }: { settings: Pick<Settings, 'signing'>; outbound: Outbound },
  addresses: readonly Address[],
  clock: Clock,
): Promise<Finding[]> {
  const signing = settings.signing.kind === 'http' ? [{ of: 'SIGNING_URL', url: settings.signing.url }] : [];
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

/** Returns one address of each origin. */
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
