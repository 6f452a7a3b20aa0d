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

const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** `20261122`, as epoch milliseconds of that day's beginning. @throws AuthError 400 */
function parsedDay(text: string | undefined, usual: number): number {
  if (text === undefined) return usual;
  const at = Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3'));
  if (!/^\d{8}$/.test(text) || Number.isNaN(at) || dateOf(at).replaceAll('-', '') !== text)
    throw apiError(400, `Invalid date: ${text.slice(0, 20)} is not YYYYMMDD`, 'invalid_query_string');
  return at;
}

/** The events of some types on the day that begins at a time: by their ids, which an index has beside the type. */
async function eventsOf(store: Store, at: number, types: readonly string[]) {
  // No id is as short as where the next day begins.
  const on = { field: 'id', from: eventIdAt(at), to: eventIdAt(at + DAY) };
  const { records, total = 0 } = await store.collection('logs').list({
    where: { all: [{ field: 'type', in: types }, on] },
    sort: { field: 'id' },
    limit: 1,
    total: true,
  });
  return { total, first: records[0]?.date };
}

/** The numbers of a day; undefined of one on which nothing of it happened. */
async function statsOf(store: Store, at: number, now: string): Promise<object | undefined> {
  const day = dateOf(at);
  const entries = Object.entries(COUNTED);
  const found = await Promise.all(entries.map(([, types]) => eventsOf(store, at, types)));
  const firsts = found.flatMap(({ first }) => first ?? []).sort();
  if (firsts.length === 0) return undefined;
  const end = `${day}T23:59:59.999Z`;
  return {
    date: `${day}T00:00:00.000Z`,
    ...Object.fromEntries(entries.map(([name], index) => [name, found[index]?.total ?? 0])),
    created_at: firsts[0],
    // A day that is over has its last number.
    updated_at: now < end ? now : end,
  };
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
      const from = new Date(Date.parse(now()) - DAYS * DAY).toISOString();
      const where = { field: 'last_login', from };
      const { total = 0 } = await store.collection('users').list({ where, limit: 1, total: true });
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
      const stats: object[] = [];
      for (const day of days) {
        const found = await statsOf(store, day, at);
        if (found !== undefined) stats.push(found);
      }
      return ok(stats);
    },
  }),
];
