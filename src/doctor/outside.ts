// Checks addresses outside: whether they answer, and the time there.
import type { Inspection } from '../administration/inspect.ts';
import type { Outbound } from '../http/outbound.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Settings } from '../settings.ts';
import { clockFinding, type Finding, findings, messageOf } from './finding.ts';

/** How many addresses are requested at once. */
const AT_ONCE = 8;
/** Most addresses; longer lists are hardly read. */
const MOST = 200;
const PATIENCE = 5_000;
const outside = findings('outside');

type Address = Inspection['addresses'][number];

/** Requests the root of each host once. Any answer counts as success. */
export async function checkOutside(
  { settings, outbound }: { settings: Pick<Settings, 'signing'>; outbound: Outbound },
  addresses: readonly Address[],
  clock: Clock,
): Promise<Finding[]> {
  const signing = settings.signing.kind === 'http' ? [{ of: 'SIGNING_URL', url: settings.signing.url }] : [];
  const left = distinct([...signing, ...addresses]).slice(0, MOST);
  const found: Finding[] = [];
  const skews: number[] = [];
  const work = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
      const { finding, skew } = await ask(outbound, one, clock);
      found.push(finding);
      if (skew !== undefined) skews.push(skew);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return [...found, ...clockFindings(skews)];
}

/** Returns one address of each origin. */
function distinct(addresses: readonly Address[]): Address[] {
  const byOrigin = new Map<string, Address>();
  for (const one of addresses) {
    const origin = URL.parse(one.url)?.origin;
    if (origin !== undefined && !byOrigin.has(origin)) byOrigin.set(origin, { ...one, url: `${origin}/` });
  }
  return [...byOrigin.values()];
}

async function ask(
  outbound: Pick<Outbound, 'fetch'>,
  { of, url }: Address,
  clock: Clock,
): Promise<{ finding: Finding; skew?: number }> {
  const { host } = new URL(url);
  try {
    const { headers } = await outbound.fetch(url, { redirect: 'manual', timeout: PATIENCE, headOnly: true });
    const there = Date.parse(headers.get('date') ?? '');
    const skew = Number.isNaN(there) ? {} : { skew: clock() - there };
    return { finding: outside.ok(`${host} answers (${of})`), ...skew };
  } catch (thrown) {
    return { finding: outside.warning(`${host} does not (${of}): ${messageOf(thrown)}`) };
  }
}

/** Compares with the median: a single host may have a wrong clock. */
function clockFindings(skews: readonly number[]): Finding[] {
  const middle = [...skews].sort((a, b) => a - b)[Math.floor(skews.length / 2)];
  return middle === undefined ? [] : [clockFinding(middle, 'the hosts that were asked')];
}
