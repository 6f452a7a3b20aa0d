// How many log events people may cause who are nobody to us: whoever looks for a reason finds some, and nobody
// fills the store, from however many addresses.

import type { EventType } from '../records/log-events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBudget, TenantEvent } from '../tenant/events.ts';
import { addressKey } from './addresses.ts';

interface Bucket {
  /** How many events may come at once. */
  capacity: number;
  /** How many come back per minute. */
  perMinute: number;
}

interface Bounds {
  address: Bucket;
  all: Bucket;
}

/** Of messages that nothing but a request is needed for. */
const REFUSED: Bounds = {
  address: { capacity: 10, perMinute: 0.1 },
  all: { capacity: 100, perMinute: 1 },
};

/** Of attempts that attack protection counts as well, and that somebody may want to see whole. */
const ATTEMPTED: Bounds = {
  address: { capacity: 200, perMinute: 20 },
  all: { capacity: 5_000, perMinute: 100 },
};

const BOUNDS: Partial<Record<EventType, Bounds>> = { flo: REFUSED, f: REFUSED };

/** Addresses whose buckets are kept, at most; who was pushed out is still under the bound of all. */
const MOST = 10_000;

type Levels = Map<string, { tokens: number; at: number }>;

/** The budget of one process: for each type of event, by address and in all. Events of a known user have no bounds. */
export function createEventBudget(clock: Clock): EventBudget {
  const [ofAddresses, ofAll]: [Levels, Levels] = [new Map(), new Map()];
  const leftOut = new Map<EventType, number>();
  return (event: TenantEvent) => {
    if (event.user_id !== undefined) return { isRecorded: true, leftOut: 0 };
    const { type, ip = '' } = event;
    const { address, all } = BOUNDS[type] ?? ATTEMPTED;
    const now = clock();
    const missed = leftOut.get(type) ?? 0;
    const isRecorded =
      take(ofAddresses, `${type}\n${addressKey(ip)}`, address, now) && take(ofAll, type, all, now);
    leftOut.set(type, isRecorded ? 0 : missed + 1);
    return { isRecorded, leftOut: isRecorded ? missed : 0 };
  };
}

/** Takes one from a bucket. @returns whether there was one. */
function take(levels: Levels, key: string, { capacity, perMinute }: Bucket, now: number): boolean {
  const { tokens, at } = levels.get(key) ?? { tokens: capacity, at: now };
  const level = Math.min(capacity, tokens + ((now - at) * perMinute) / 60_000);
  levels.delete(key);
  levels.set(key, { tokens: level >= 1 ? level - 1 : level, at: now });
  const [oldest] = levels.keys();
  if (levels.size > MOST && oldest !== undefined) levels.delete(oldest);
  return level >= 1;
}
