// Carries out orders and transfers at the running server, or in this process if there is none.
import { type Logger, pino } from 'pino';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { type Random, systemRandom } from '../../runtime/secrets.ts';
import type { Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { openStore } from '../../store/open.ts';
import { createEvents, RETENTION_DAYS } from '../../tenant/events.ts';
import { createAdministrators } from '../../users/administrators.ts';
import { createHasher } from '../../users/hashing.ts';
import { withoutPauses } from '../../users/transfer/whole-file.ts';
import { createUsers } from '../../users/users.ts';
import { type Order, type OrderName, type OrderResult, runOrder } from './orders.ts';
import { sendOrder, sendTransfer } from './send.ts';
import { type Transfer, type TransferProgress, transferUsers } from './transfer.ts';

/** A tenant can be applied before the first start. All other orders need an existing store. */
const BEGINNING: ReadonlySet<OrderName> = new Set(['apply', 'plan', 'moveConfiguration']);

/**
 * Carries out an order: at the server that runs on the data directory, or in this process if there is none.
 * @param log the store's log, if this process opens it.
 * @throws TenantFault; Error with the reason
 */
export async function sendOrRunOrder<Name extends OrderName>(
  settings: Settings,
  order: Order<Name>,
  log: Logger,
): Promise<OrderResult<Name>> {
  const answer = await sendOrder(settings.dataDir, order);
  if (answer !== undefined) return answer.result;
  const mustBeThere = !BEGINNING.has(order.command);
  const store = await openStore({ ...settings, clock: systemClock, log, mustBeThere });
  const capabilities = { store, clock: systemClock, random: systemRandom };
  const hasher = createHasher();
  const users = createUsers({ ...capabilities, hasher });
  const administrators = createAdministrators({ ...capabilities, hasher });
  const days = (await store.collection('tenant').get('tenant'))?.tenant.log_retention_days;
  const events = createLocalEvents(capabilities, days ?? RETENTION_DAYS);
  // The next start continues recorded removals and checks the providers of connections.
  const nextStart = { resumeRemovals: () => undefined, checkConnections: async () => undefined };
  const endBlocked = endAccessIn(store, systemClock);
  const silentLog = { info: () => undefined, error: () => undefined };
  try {
    return await runOrder(
      { ...capabilities, settings, users, administrators, endBlocked, log: silentLog, events, ...nextStart },
      order,
    );
  } finally {
    await events.flush();
    await store.close();
  }
}

/** Imports or exports users: through the server that runs on the data directory, otherwise in this process. */
export async function* sendOrRunTransfer(
  settings: Settings,
  transfer: Transfer,
  { file, log }: { file(): AsyncGenerator<string>; log: Logger },
): AsyncGenerator<TransferProgress> {
  const answered = await sendTransfer(settings.dataDir, transfer, file());
  if (answered !== undefined) return yield* answered;
  const store = await openStore({ ...settings, clock: systemClock, log, mustBeThere: true });
  try {
    const endBlocked = endAccessIn(store, systemClock);
    const deps = { store, clock: systemClock, random: systemRandom, endBlocked, between: withoutPauses };
    yield* transferUsers(deps, transfer, file());
  } finally {
    await store.close();
  }
}

/** Returns a log of the tenant that this process writes: changes only, without a limit on their number. */
function createLocalEvents(capabilities: { store: Store; clock: Clock; random: Random }, days: number) {
  const budget = () => ({ isRecorded: true, omitted: 0 });
  const log = pino({ level: 'silent' });
  return createEvents({ ...capabilities, log, budget, retentionDays: () => days });
}

/** Returns a function that ends all sessions and tokens of a user. Applications are not notified. */
function endAccessIn(store: Store, clock: Clock): (userId: string) => Promise<void> {
  return async (userId) => {
    await store.collection('artifacts').deleteBy('account', userId);
    const access_ended_at = new Date(clock()).toISOString();
    await store.collection('users').update(userId, (user) => ({ ...user, access_ended_at }));
  };
}
