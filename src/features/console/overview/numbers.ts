// The numbers of the overview: log events per interval, for charts and tables.
import { distinct } from '../../../tenant/distinct.ts';
import type { HourCount, LogCounts } from '../../../tenant/log-counts.ts';
import { type EventGroup, typesNamed } from '../event-groups.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The selectable time ranges: how many intervals of which length, milliseconds. */
const RANGES = {
  '24h': { parts: 24, length: HOUR_MS, form: 'hour' },
  '7d': { parts: 28, length: 6 * HOUR_MS, form: 'hour' },
  '30d': { parts: 30, length: DAY_MS, form: 'day' },
} as const;

type Range = keyof typeof RANGES;

export const RANGE_NAMES = Object.keys(RANGES) as readonly Range[];

/** Returns the range with a name; by default a day. */
export const rangeNamed = (name: unknown): Range => RANGE_NAMES.find((one) => one === name) ?? '24h';

/** What is counted. `active` counts users, the others count events. */
const COUNTED = ['logins', 'failures', 'signups', 'active', 'codes', 'lockouts'] as const;

export interface Numbers {
  range: Range;
  /** The form in which times are shown. */
  form: 'hour' | 'day';
  /** The beginnings of the intervals, epoch milliseconds, oldest first. */
  times: number[];
  series: {
    name: (typeof COUNTED)[number];
    /** The counted events, or the events whose users are counted. */
    group: EventGroup;
    values: number[];
    total: number;
  }[];
  /** Whether some events are not counted yet. */
  isBehind: boolean;
}

/** @param now epoch milliseconds. */
export async function numbersOf(counts: LogCounts, range: Range, now: number): Promise<Numbers> {
  const { parts, length, form } = RANGES[range];
  // The last interval contains the present time.
  const end = now - (now % length) + length;
  const from = end - parts * length;
  const { hours, isBehind } = await counts.since(from);
  const times = Array.from({ length: parts }, (_, n) => from + n * length);
  const within = times.map((time) =>
    [...hours].filter(([hour]) => hour >= time && hour < time + length).map(([, count]) => count),
  );
  const series = COUNTED.map((name) => {
    if (name === 'active')
      return { name, group: 'logins' as const, values: within.map(peopleOf), total: peopleOf(within.flat()) };
    const values = within.map((all) => eventsOf(all, name));
    return { name, group: name, values, total: values.reduce((sum, one) => sum + one, 0) };
  });
  return { range, form, times, series, isBehind };
}

function eventsOf(hours: readonly HourCount[], group: EventGroup): number {
  const types = typesNamed(group);
  return hours.reduce(
    (sum, { counts }) => sum + types.reduce((all, type) => all + (counts[type] ?? 0), 0),
    0,
  );
}

function peopleOf(hours: readonly HourCount[]): number {
  const all = distinct();
  for (const { users } of hours) all.merge(users);
  return all.count();
}

/**
 * Returns for each type how often it was logged in the last day, and the id of the latest event.
 * @param now epoch milliseconds.
 */
export async function lastDayOf(counts: LogCounts, types: readonly string[], now: number) {
  const { hours } = await counts.since(now - DAY_MS);
  const found = new Map<string, { count: number; latest: string }>();
  for (const [, { counts: counted, latest }] of [...hours].sort(([a], [b]) => a - b)) {
    for (const type of types) {
      const [count, id] = [counted[type], latest[type]];
      if (count === undefined || id === undefined) continue;
      found.set(type, { count: count + (found.get(type)?.count ?? 0), latest: id });
    }
  }
  return found;
}
