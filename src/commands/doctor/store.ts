// Checks the store, through the running server, or opened here where none runs.
import type { Logger } from 'pino';
import type { Clock } from '../../runtime/clock.ts';
import type { Inspection } from '../../server/administration/inspect.ts';
import { sendOrRunOrder } from '../../server/administration/order.ts';
import type { Settings } from '../../settings/settings.ts';
import { StoreAbsent } from '../../store/contract.ts';
import { clockFinding, DAY_MS, type Finding, findings, messageOf } from './finding.ts';

/** Age of a signing key above which a rotation is due. Keys are changed a few times a year. */
const OLD_KEY_MS = 180 * DAY_MS;
/** Clocks of machines that write to one store must not differ by more, milliseconds. */
const MAX_SKEW_MS = 60_000;

const database = findings('database');
const keys = findings('signing keys');
const clocks = findings('clock');
const streams = findings('log streams');

/** Opens and inspects the store; `inspection` is undefined where there is no store, or it does not answer. */
export async function checkStore(
  settings: Settings,
  log: Logger,
): Promise<{ findings: Finding[]; inspection?: Inspection }> {
  const location = settings.databaseUrl === undefined ? `the store in ${settings.dataDir}` : 'DATABASE_URL';
  try {
    const inspection = (await sendOrRunOrder(settings, { command: 'inspect' }, log)) as Inspection;
    return { findings: [database.ok(`${location} can be read and written`)], inspection };
  } catch (thrown) {
    if (thrown instanceof StoreAbsent)
      return { findings: [database.ok(`${thrown.message} yet: the first start makes it`)] };
    return { findings: [database.fault(`${location}: ${messageOf(thrown)}`)] };
  }
}

/** Returns the findings about the content of the store. */
export function inspectionFindings(
  { signingKeys, newestEvent, clockAhead, suspendedStreams }: Inspection,
  clock: Clock,
): Finding[] {
  return [
    ...signingKeys.map(({ alg, createdAt }) => {
      const age = clock() - createdAt * 1000;
      const text = `${alg}: ${Math.floor(Math.max(0, age) / DAY_MS)} days old`;
      return age > OLD_KEY_MS ? keys.warning(`${text}: gatehouse keys rotate`) : keys.ok(text);
    }),
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
