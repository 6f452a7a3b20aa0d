// Carries out an order at the running server, or in this process if there is none.
import { type Logger, pino } from 'pino';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { type Random, systemRandom } from '../../runtime/secrets.ts';
import type { Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { openStore } from '../../store/open.ts';
import { createEvents, RETENTION_DAYS } from '../../tenant/events.ts';
import { createAdministrators } from '../../users/administrators.ts';
import { createHasher } from '../../users/hashing.ts';
import { createUsers } from '../../users/users.ts';
import { endAccessIn } from './end-access.ts';
import { type Order, runOrder } from './orders.ts';
import { sendOrder } from './send.ts';

/**
 * Carries out an order: at the server that runs on the data directory, or in this process if there is none.
 * @param log the store's log, if this process opens it.
 * @throws TenantFault; Error with the reason
 */
export async function sendOrRunOrder(settings: Settings, order: Order, log: Logger): Promise<unknown> {
  const { dataDir, databaseUrl, secretsKey } = settings;
  const answer = await sendOrder(dataDir, order);
  if (answer !== undefined) return answer.result;
  // A tenant can be applied before the first start. All other orders need an existing store.
  const mustBeThere = order.command !== 'apply' && order.command !== 'plan';
  const store = await openStore({
    dataDir,
    databaseUrl,
    secretsKey,
    clock: systemClock,
    log,
    mustBeThere,
  });
  const capabilities = { store, clock: systemClock, random: systemRandom };
  const hasher = createHasher();
  const users = createUsers({ ...capabilities, hasher });
  const administrators = createAdministrators({ ...capabilities, hasher });
  const days = (await store.collection('tenant').get('tenant'))?.tenant.log_retention_days;
  const events = createLocalEvents(capabilities, days ?? RETENTION_DAYS);
  // The next start continues recorded removals and checks the providers of connections.
  const nextStart = { resumeRemovals: () => undefined, checkConnections: async () => undefined };
  const endSessions = endAccessIn(store, systemClock);
  const silentLog = { info: () => undefined, error: () => undefined };
  try {
    return await runOrder(
      { ...capabilities, settings, users, administrators, endSessions, log: silentLog, events, ...nextStart },
      order,
    );
  } finally {
    await events.flush();
    await store.close();
  }
}

/** Returns a log of the tenant that this process writes: changes only, without a limit on their number. */
function createLocalEvents(capabilities: { store: Store; clock: Clock; random: Random }, days: number) {
  const budget = () => ({ isRecorded: true, omitted: 0 });
  const log = pino({ level: 'silent' });
  return createEvents({ ...capabilities, log, budget, types: new Set(['sapi']), retentionDays: () => days });
}
