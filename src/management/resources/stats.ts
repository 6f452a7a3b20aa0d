// Numbers of the tenant: `/stats`. Those of a day are counted in its log, which goes thirty days back.
import { z } from 'zod';
import type { Store } from '../../store/contract.ts';
import { eventIdAt } from '../../tenant/events.ts';
import { type Call, callsWith, ok } from '../call.ts';
import { apiError } from '../errors.ts';

export interface StatsDependencies {
  store: Store;
  /** ISO 8601. */
  now(): string;
}

const DAY = 86_400_000;

/** How many days the log goes back, and what "active" means. */
const DAYS = 30;

/** What is counted, by the events of the log. */
const COUNTED = {
  logins: ['s'],
  signups: ['ss'],
  leaked_passwords: ['pwd_leak', 'signup_pwd_leak'],
} as const;

type Counted = keyof typeof COUNTED;

const COUNTED_NAMES = Object.keys(COUNTED) as Counted[];

const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** `20261122`, as epoch milliseconds of that day's beginning. @throws AuthError 400 */
function parsedDay(text: string | undefined, usual: number): number {
  if (text === undefined) return usual;
  const at = Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3'));
  if (!/^\d{8}$/.test(text) || Number.isNaN(at) || dateOf(at).replaceAll('-', '') !== text)
    throw apiError(400, `Invalid date: ${text.slice(0, 20)} is not YYYYMMDD`, 'invalid_query_string');
  return at;
}

/** The events of some types within a time: how many where that is asked for, and when the first was. */
async function eventsOf(
  store: Store,
  { types, from, to }: { types: readonly string[]; from: number; to: number },
  total: boolean,
) {
  // By their ids, which an index has beside the type. None is as short as where the next day begins.
  const within = { field: 'id', from: eventIdAt(from), to: eventIdAt(to) };
  const where = { all: [{ field: 'type', in: types }, within] };
  const found = await store.collection('logs').list({ where, sort: { field: 'id' }, limit: 1, total });
  return { total: found.total ?? 0, first: found.records[0]?.date };
}

/**
 * The numbers of a day; undefined of one on which nothing of it happened.
 * @param names what is counted at all.
 */
async function statsOf(store: Store, names: readonly Counted[], at: number, now: string) {
  const found = await Promise.all(
    names.map(async (name) => {
      const events = await eventsOf(store, { types: COUNTED[name], from: at, to: at + DAY }, true);
      return { name, ...events };
    }),
  );
  const [first] = found.flatMap((one) => one.first ?? []).sort();
  if (first === undefined) return undefined;
  const totals = Object.fromEntries(found.map(({ name, total }) => [name, total]));
  const day = dateOf(at);
  const end = `${day}T23:59:59.999Z`;
  return {
    date: `${day}T00:00:00.000Z`,
    ...Object.fromEntries(COUNTED_NAMES.map((name) => [name, totals[name] ?? 0])),
    created_at: first,
    // A day that is over has its last number.
    updated_at: now < end ? now : end,
  };
}

/** What of the counted happened at all within a time: most tenants have no leaked passwords, which then need not be asked for. */
async function countedWithin(store: Store, from: number, to: number): Promise<Counted[]> {
  const found = await Promise.all(
    COUNTED_NAMES.map((name) => eventsOf(store, { types: COUNTED[name], from, to }, false)),
  );
  return COUNTED_NAMES.filter((_, n) => found[n]?.first !== undefined);
}

/** How many users logged in last on a day. @param from since when on that day, ISO 8601 */
async function usersOf(store: Store, { day, from }: { day: string; from?: string }): Promise<number> {
  const onDay = { index: 'lastLoginDay', equals: day };
  const where = from === undefined ? onDay : { all: [onDay, { field: 'last_login', from }] };
  const { total = 0 } = await store.collection('users').list({ where, limit: 0, total: true });
  return total;
}

const call = callsWith<StatsDependencies>();

/** All calls of numbers. */
export const statsCalls: Call<StatsDependencies>[] = [
  call({
    method: 'GET',
    path: '/stats/active-users',
    scopes: ['read:stats'],
    summary: 'Get how many users logged in during the last 30 days',
    handle: async ({ store, now }) => {
      const from = Date.parse(now()) - DAYS * DAY;
      // Only of the first day each user is read.
      let total = await usersOf(store, { day: dateOf(from), from: new Date(from).toISOString() });
      for (let n = 1; n <= DAYS; n += 1) total += await usersOf(store, { day: dateOf(from + n * DAY) });
      return ok(total);
    },
  }),
  call({
    method: 'GET',
    path: '/stats/daily',
    scopes: ['read:stats'],
    summary: 'Get the logins and sign-ups of each day',
    query: z.strictObject({ from: z.string().max(64).optional(), to: z.string().max(64).optional() }),
    handle: async ({ store, now }, { query }) => {
      const at = now();
      const today = Date.parse(dateOf(Date.parse(at)));
      const oldest = today - DAYS * DAY;
      const first = Math.max(parsedDay(query.from, oldest), oldest);
      const last = Math.min(parsedDay(query.to, today), today);
      const days = Array.from({ length: Math.max(0, (last - first) / DAY + 1) }, (_, i) => first + i * DAY);
      const names = await countedWithin(store, first, last + DAY);
      const stats: object[] = [];
      for (const day of days) {
        const found = await statsOf(store, names, day, at);
        if (found !== undefined) stats.push(found);
      }
      return ok(stats);
    },
  }),
];
