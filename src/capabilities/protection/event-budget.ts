// Limits the log events of unknown users, by address and in total, so that strangers cannot fill the store.
// docs/decisions/sessions-logout.md#a-refused-logout-changes-nothing

import type { Bucket } from '../../records/limits.ts';
import type { EventType } from '../../records/log-events.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBudget, TenantEvent } from '../../tenant/events.ts';
import { addressKey } from './callers.ts';
import { type Level, updateLevel } from './rate-limit.ts';

interface Bounds {
  address: Bucket;
  all: Bucket;
}

/** For rejected requests. */
const REJECTED_REQUESTS: Bounds = {
  address: { capacity: 10, perMinute: 0.1 },
  all: { capacity: 100, perMinute: 1 },
};

/** For failed attempts, which attack protection limits as well. */
const FAILED_ATTEMPTS: Bounds = {
  address: { capacity: 200, perMinute: 20 },
  all: { capacity: 5_000, perMinute: 100 },
};

const BOUNDS: Partial<Record<EventType, Bounds>> = { flo: REJECTED_REQUESTS, f: REJECTED_REQUESTS };

/** How many addresses have a bucket. An evicted address still counts towards the total. */
const MAX_ADDRESSES = 10_000;

type Levels = Map<string, Level>;

/**
 * Returns the budget of a process for each event type, by address and in total. Events of known users are not
 * limited.
 */
export function createEventBudget(clock: Clock): EventBudget {
  const [byAddress, total]: [Levels, Levels] = [new Map(), new Map()];
  const omitted = new Map<EventType, number>();
  return (event: TenantEvent) => {
    // Neither are changes by the Management API, which only authorized callers make.
    // docs/decisions/management-api.md#log-events-of-successful-changes-are-not-rate-limited
    if (event.user_id !== undefined || event.type === 'sapi') return { isRecorded: true, omitted: 0 };
    const { type, ip = '' } = event;
    const { address, all } = BOUNDS[type] ?? FAILED_ATTEMPTS;
    const now = clock();
    const omittedBefore = omitted.get(type) ?? 0;
    const isRecorded =
      take(byAddress, `${type}\n${addressKey(ip)}`, address, now) && take(total, type, all, now);
    omitted.set(type, isRecorded ? 0 : omittedBefore + 1);
    return { isRecorded, omitted: isRecorded ? omittedBefore : 0 };
  };
}

/** Takes one from a bucket. @returns whether there was one. */
function take(levels: Levels, key: string, bucket: Bucket, now: number): boolean {
  const { level, left } = updateLevel(bucket, levels.get(key), { now, taken: 1 });
  levels.delete(key);
  levels.set(key, level);
  const [oldest] = levels.keys();
  if (levels.size > MAX_ADDRESSES && oldest !== undefined) levels.delete(oldest);
  return left >= 0;
}
