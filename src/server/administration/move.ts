// The orders of `gatehouse move open`, `trickle`, `status` and `close`: what of a tenant of the hosted service is accepted
// here, and until when.
import { z } from 'zod';
import { type MoveState, moveState } from '../../features/move/move-state.ts';
import { createOldDirectory } from '../../features/move/old-directory.ts';
import {
  BOUNDS,
  OldTenantFault,
  type SendToOldTenant,
  sendToOldTenant,
} from '../../features/move/old-requests.ts';
import { isLoopback } from '../../http/loopback.ts';
import { createOutbound, outboundRules } from '../../http/outbound/outbound.ts';
import { OutboundError } from '../../http/outbound/outbound-error.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import { customDatabase } from '../../records/database-options.ts';
import { isOpen, MOVE, type MoveRecord } from '../../records/tenant/move.ts';
import { outboundAllow } from '../../settings/index.ts';
import { isForThisMachine } from '../../settings/server.ts';
import type { Store } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { originalUserId } from '../../users/changes.ts';
import { NO_PASSWORD } from '../../users/credentials.ts';
import { type OrderDependencies, order, recordOrder } from './order.ts';

const DAY_MS = 86_400_000;
/** The longest time that a move may be open, milliseconds. */
const MAX_MS = 366 * DAY_MS;

/** A date, or a date with a time. */
const until = z.string().min(1).max(64);

/** Opens the move, or changes until when it is open and by which application the old tenant is asked. */
export const moveOpen = order({
  body: z.strictObject({
    tenant: z.string().min(1).max(255),
    client_id: z.string().min(1).max(255),
    client_secret: z.string().min(1).max(1024),
    until,
  }),
  run: async (deps, { tenant, client_id, client_secret, until: date }) => {
    const { store, clock } = deps;
    const origin = await originOf(deps, tenant);
    const present = await store.collection('moves').get(MOVE);
    const now = clock();
    if (present !== undefined && present.origin !== origin && isOpen(present, present, now))
      throw new Error(`a move from ${present.origin} is open: end it first, by gatehouse move close`);
    const management = { client_id, client_secret };
    await checkOldTenant(deps, { origin, management });
    const record = await store.collection('moves').upsert(MOVE, (before) => ({
      ...(before?.origin === origin ? withoutEnd(before) : { id: MOVE, passwords: {}, opened_at: iso(now) }),
      origin,
      management,
      until: iso(endOf(date, now)),
    }));
    if (present?.origin !== origin) await forgetCounts(store);
    recordOrder(deps.events, 'move open', 'Open a move from another tenant', {
      before: present,
      after: record,
    });
    deps.log.info({ origin, until: record.until }, 'a move was opened by a command');
    return moveStateOf(deps);
  },
});

/** Opens or ends the bridge of passwords of a connection. */
export const movePasswords = order({
  body: z.strictObject({
    connection: z.string().min(1).max(255),
    until: until.optional(),
    lets_enrol: z.boolean().optional(),
    end: z.boolean().optional(),
  }),
  run: async (deps, { connection: name, until: date, lets_enrol: letsEnrol = false, end = false }) => {
    const { store, clock } = deps;
    const now = clock();
    const connection = (await store.collection('connections').findBy('name', name))[0];
    if (connection === undefined) throw new Error(`there is no connection ${name}`);
    const move = await requireMove(deps);
    const { id } = connection;
    if (end && move.passwords[id] === undefined)
      throw new Error(`the passwords of ${name} are not asked for at the old tenant`);
    if (!end) refuseOthers(connection);
    const here_before = end ? 0 : (move.passwords[id]?.here_before ?? (await passwordsIn(store, name)));
    const after = await store.collection('moves').update(MOVE, (current) => {
      const before = current.passwords[id];
      const opened = {
        opened_at: before?.opened_at ?? iso(now),
        until: date === undefined ? current.until : iso(endOf(date, now)),
        here_before,
        ...(letsEnrol && { lets_enrol: true }),
      };
      const bridge = end && before !== undefined ? { ...before, ended_at: iso(now) } : opened;
      return { ...current, passwords: { ...current.passwords, [id]: bridge } };
    });
    if (after === undefined) throw new Error(NO_MOVE);
    const description = end
      ? `End the passwords of the old tenant for ${name}`
      : `Accept the passwords of the old tenant for ${name}`;
    recordOrder(deps.events, 'move trickle', description, {
      before: move.passwords[id],
      after: after.passwords[id],
    });
    deps.log.info({ connection: name, end }, 'the passwords of the old tenant were switched by a command');
    return moveStateOf(deps);
  },
});

/** Ends all bridges, and forgets the old tenant with the secrets for it. Returns the last state. */
export const moveClose = order({
  body: z.strictObject({}),
  run: async (deps) => {
    const last = await moveState({ store: deps.store, wallClock: deps.clock, directory: undefined });
    const record = await deps.store.collection('moves').take(MOVE);
    if (last === undefined || record === undefined) throw new Error(NO_MOVE);
    await forgetCounts(deps.store);
    recordOrder(deps.events, 'move close', 'End the move from another tenant', { before: record });
    deps.log.info({ origin: record.origin }, 'a move was ended by a command');
    return last;
  },
});

export const moveStatus = order({ body: z.strictObject({}), run: (deps) => moveStateOf(deps) });

export const NO_MOVE = 'no move is open: gatehouse move open begins one';

export const iso = (at: number) => new Date(at).toISOString();

/** @throws Error if no move is open. */
export async function requireMove({
  store,
  clock,
}: Pick<OrderDependencies, 'store' | 'clock'>): Promise<Frozen<MoveRecord>> {
  const move = await store.collection('moves').get(MOVE);
  if (move === undefined || !isOpen(move, move, clock())) throw new Error(NO_MOVE);
  return move;
}

function withoutEnd({ ended_at: _, ...move }: Frozen<MoveRecord>): Omit<Frozen<MoveRecord>, 'ended_at'> {
  return move;
}

async function forgetCounts(store: Store): Promise<void> {
  for (const { id } of await listAll(store.collection('moveCounts')))
    await store.collection('moveCounts').delete(id);
}

/**
 * Returns the end that a date means, epoch milliseconds: a date without a time is still included, in UTC.
 * @throws Error if it is no date, in the past, or further away than {@link MAX_MS}.
 */
export function endOf(date: string, now: number): number {
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(date);
  const isTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(date);
  const at = isDay || isTime ? Date.parse(date) + (isDay ? DAY_MS : 0) : Number.NaN;
  // `2026-02-30` is read as a day of March.
  if (Number.isNaN(at) || (isDay && iso(at - DAY_MS).slice(0, 10) !== date))
    throw new Error(`${date} is no date, such as 2027-03-31 or 2027-03-31T12:00:00Z`);
  if (at <= now) throw new Error(`${date} is over`);
  if (at > now + MAX_MS) throw new Error(`${date} is more than a year away`);
  return at;
}

/**
 * Returns the origin of the old tenant.
 * @param tenant its canonical name, such as `acme.eu.auth0.com`, or that as an origin.
 * @throws Error if it is none, or that of this server.
 */
export async function originOf(
  { store, settings }: Pick<OrderDependencies, 'store' | 'settings'>,
  tenant: string,
): Promise<string> {
  const url = URL.parse(tenant.includes('://') ? tenant : `https://${tenant}`);
  const isBare = url !== null && url.href === `${url.origin}/`;
  const isLocal = url !== null && url.protocol === 'http:' && isLoopback(url.hostname);
  if (url === null || !isBare || !(url.protocol === 'https:' || (isLocal && isForThisMachine(settings))))
    throw new Error(`${tenant} is no name of a tenant, such as acme.eu.auth0.com`);
  const domains = await store.collection('documents').findBy('kind', 'custom-domain');
  const own = [new URL(settings.baseUrl).host, ...domains.map(({ body }) => String(body.domain))];
  if (own.includes(url.host))
    throw new Error(
      `${url.host} is this server: give a name that the hosted service has made for the old tenant, not its custom domain`,
    );
  return url.origin;
}

/** @throws Error if the old tenant cannot be asked by the application. */
async function checkOldTenant(
  deps: OrderDependencies,
  move: Pick<MoveRecord, 'origin' | 'management'>,
): Promise<void> {
  try {
    await directoryOf(deps).countAll(move);
  } catch (thrown) {
    if (!(thrown instanceof OldTenantFault || thrown instanceof OutboundError)) throw thrown;
    throw new Error(
      `the move was not opened: ${thrown.message}. The application needs the grants "Client Credentials" and "Password", and the Management API with read:users and read:authentication_methods`,
    );
  }
}

function directoryOf(deps: Pick<OrderDependencies, 'settings' | 'clock'>) {
  return createOldDirectory({ send: senderOf(deps, 'passwords'), clock: deps.clock });
}

/** Returns what asks the old tenant for an order, as the server does for a bridge. */
export function senderOf(
  { settings, clock }: Pick<OrderDependencies, 'settings' | 'clock'>,
  bridge: keyof typeof BOUNDS,
): SendToOldTenant {
  const { fetch } = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  return sendToOldTenant({ fetch, clock, pause, bounds: BOUNDS[bridge] });
}

/** Returns null if there is no move: the answer is sent as JSON. */
export async function moveStateOf(deps: OrderDependencies): Promise<MoveState | null> {
  const state = await moveState({ store: deps.store, wallClock: deps.clock, directory: directoryOf(deps) });
  return state ?? null;
}

/** @throws Error for a connection that has no passwords of the old tenant. */
function refuseOthers(connection: Connection): void {
  if (connection.strategy !== DATABASE)
    throw new Error(`the users of ${connection.name} have no passwords here: it is ${connection.strategy}`);
  if (customDatabase(connection) === 'elsewhere')
    throw new Error(`the users of ${connection.name} stay in its own database, which is asked as ever`);
}

/** Users whose passwords are read at a time. */
const PAGE = 200;

/** Returns how many users of a connection have a password here. */
async function passwordsIn(store: Store, connection: string): Promise<number> {
  const where = { index: 'connection', equals: connection } as const;
  let count = 0;
  let after: string | undefined;
  do {
    const page = await store
      .collection('identities')
      .list({ where, limit: PAGE, ...(after !== undefined && { after }) });
    const found = await Promise.all(
      page.records.map((one) => store.collection('credentials').get(originalUserId(one))),
    );
    count += found.filter((one) => one !== undefined && one.passwordHash !== NO_PASSWORD).length;
    after = page.next;
  } while (after !== undefined);
  return count;
}
