// `/stats`: statistics of the tenant. Numbers of a day are counted from the log, for the last 30 days.
import { z } from 'zod';
import type { Store } from '../../../../store/contract.ts';
import { eventIdAt } from '../../../../tenant/events.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';

export interface StatsDependencies {
  store: Store;
  /** ISO 8601. */
  now(): string;
}

const DAY_MS = 86_400_000;

// docs/understand/decisions/management-api.md#statsdaily-goes-back-as-far-as-the-log
/** The number of days that the log is evaluated, and within which a user counts as active. */
const PERIOD_DAYS = 30;

/** The event types that each number counts. */
const EVENT_TYPES = {
  logins: ['s'],
  signups: ['ss'],
  leaked_passwords: ['pwd_leak', 'signup_pwd_leak'],
} as const;

type Figure = keyof typeof EVENT_TYPES;

const FIGURES = Object.keys(EVENT_TYPES) as Figure[];

const dateOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/**
 * Returns the beginning of a day, such as `20261122`, in epoch milliseconds.
 * @param fallback for no text.
 * @throws AuthError 400
 */
function parsedDay(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const time = Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3'));
  if (!/^\d{8}$/.test(text) || Number.isNaN(time) || dateOf(time).replaceAll('-', '') !== text)
    throw apiError(400, `Invalid date: ${text.slice(0, 20)} is not YYYYMMDD`, 'invalid_query_string');
  return time;
}

/** Returns the number of events of some types within a period, if `total` is true, and the date of the first. */
async function eventsOf(
  store: Store,
  { types, from, to }: { types: readonly string[]; from: number; to: number },
  total: boolean,
) {
  // Selected by id, which shares an index with the type. Ids are longer than the bounds, so the upper bound excludes
  // the next day.
  const period = { field: 'id', from: eventIdAt(from), to: eventIdAt(to) };
  const where = { all: [{ field: 'type', in: types }, period] };
  const found = await store.collection('logs').list({ where, sort: { field: 'id' }, limit: 1, total });
  return { total: found.total ?? 0, first: found.records[0]?.date };
}

/** Returns the numbers of a day; undefined if nothing was counted. @param names the numbers to count. */
async function statsOf(store: Store, names: readonly Figure[], dayStart: number, now: string) {
  const found = await Promise.all(
    names.map(async (name) => {
      const events = await eventsOf(
        store,
        { types: EVENT_TYPES[name], from: dayStart, to: dayStart + DAY_MS },
        true,
      );
      return { name, ...events };
    }),
  );
  const [first] = found.flatMap((one) => one.first ?? []).sort();
  if (first === undefined) return undefined;
  const totals = Object.fromEntries(found.map(({ name, total }) => [name, total]));
  const day = dateOf(dayStart);
  const endOfDay = `${day}T23:59:59.999Z`;
  return {
    date: `${day}T00:00:00.000Z`,
    ...Object.fromEntries(FIGURES.map((name) => [name, totals[name] ?? 0])),
    created_at: first,
    // The numbers of a past day are final.
    updated_at: now < endOfDay ? now : endOfDay,
  };
}

/**
 * Returns the numbers that are not zero in a period. The others need not be counted for each day: most tenants have
 * no leaked passwords.
 */
async function figuresWithin(store: Store, from: number, to: number): Promise<Figure[]> {
  const found = await Promise.all(
    FIGURES.map((name) => eventsOf(store, { types: EVENT_TYPES[name], from, to }, false)),
  );
  return FIGURES.filter((_, n) => found[n]?.first !== undefined);
}

// docs/understand/decisions/management-api.md#active-users-are-counted-by-the-day-of-their-last-login
/**
 * Returns the number of users whose last login was on a day.
 * @param from only logins from this time of the day on, ISO 8601
 */
async function usersOf(store: Store, { day, from }: { day: string; from?: string }): Promise<number> {
  const onDay = { index: 'lastLoginDay', equals: day };
  const where = from === undefined ? onDay : { all: [onDay, { field: 'last_login', from }] };
  const { total = 0 } = await store.collection('users').list({ where, limit: 0, total: true });
  return total;
}

const call = callsWith<StatsDependencies>();

export const statsCalls: Call<StatsDependencies>[] = [
  call({
    method: 'GET',
    path: '/stats/active-users',
    scopes: ['read:stats'],
    summary: 'Get how many users logged in during the last 30 days',
    handle: async ({ store, now }) => {
      const from = Date.parse(now()) - PERIOD_DAYS * DAY_MS;
      // Only the users of the first day are compared one by one.
      let total = await usersOf(store, { day: dateOf(from), from: new Date(from).toISOString() });
      for (let n = 1; n <= PERIOD_DAYS; n += 1)
        total += await usersOf(store, { day: dateOf(from + n * DAY_MS) });
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
      const timestamp = now();
      const today = Date.parse(dateOf(Date.parse(timestamp)));
      const oldest = today - PERIOD_DAYS * DAY_MS;
      const first = Math.max(parsedDay(query.from, oldest), oldest);
      const last = Math.min(parsedDay(query.to, today), today);
      const days = Array.from(
        { length: Math.max(0, (last - first) / DAY_MS + 1) },
        (_, i) => first + i * DAY_MS,
      );
      const names = await figuresWithin(store, first, last + DAY_MS);
      const stats: object[] = [];
      for (const day of days) {
        const found = await statsOf(store, names, day, timestamp);
        if (found !== undefined) stats.push(found);
      }
      return ok(stats);
    },
  }),
];
