// Limits the log events of unknown users, by address and in total, so that strangers cannot fill the store.
// docs/decisions/sessions-logout.md#a-refused-logout-changes-nothing

import type { Bucket } from '../../http/limits.ts';
import type { EventBounds } from '../../records/log-events.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBudget, TenantEvent } from '../../tenant/events.ts';
import { addressKey } from './callers.ts';
import { type Level, updateLevel } from './rate-limit.ts';

interface Bounds {
  address: Bucket;
  all: Bucket;
}

const BOUNDS: Readonly<Record<Exclude<EventBounds, 'unbounded'>, Bounds>> = {
  rejections: { address: { capacity: 10, perMinute: 0.1 }, all: { capacity: 100, perMinute: 1 } },
  attempts: { address: { capacity: 200, perMinute: 20 }, all: { capacity: 5_000, perMinute: 100 } },
};

/** How many addresses have a bucket. An evicted address still counts towards the total. */
const MAX_ADDRESSES = 10_000;

type Levels = Map<string, Level>;

/**
 * Returns the budget of a process for each event type, by address and in total. Events of known users are not
 * limited.
 */
export function createEventBudget(clock: Clock): EventBudget {
  const [byAddress, total]: [Levels, Levels] = [new Map(), new Map()];
  const omitted = new Map<string, number>();
  return (event: TenantEvent) => {
    const { code, bounds } = event.type;
    if (event.user_id !== undefined || bounds === 'unbounded') return { isRecorded: true, omitted: 0 };
    const { ip = '' } = event;
    const { address, all } = BOUNDS[bounds];
    const now = clock();
    const omittedBefore = omitted.get(code) ?? 0;
    const isRecorded =
      take(byAddress, `${code}\n${addressKey(ip)}`, address, now) && take(total, code, all, now);
    omitted.set(code, isRecorded ? 0 : omittedBefore + 1);
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
