// Rate limits as token buckets (spec "Limits"): a request takes one, time gives back. The headers tell what
// is left. Counters are in the store's volatile collection: they need not survive a crash.
import { createHash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import { AuthError } from '../http/errors.ts';
import type { Clock } from '../http/runtime.ts';
import type { LimitRecord } from '../store/collections.ts';
import type { Store } from '../store/contract.ts';
import type { Directory } from '../tenant/directory.ts';
import { addressKey } from './addresses.ts';
import { type Bucket, DEFAULTS, type LimitName, limitOfPath } from './limits.ts';
import { protectionSettings } from './settings.ts';

/** The message that the spec names: it points to the headers. */
const TOO_MANY =
  'Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.';

export interface RateLimits {
  /**
   * Takes one from a bucket and sets the headers.
   * @param key whose bucket it is: a user, an e-mail address …
   * @throws AuthError 429 `too_many_requests` when the bucket is empty.
   */
  take(ctx: Context, name: LimitName, key: string): Promise<void>;
  /** The same for the bucket of the address that asks, and of what else is said. @throws AuthError as `take`. */
  takeFrom(ctx: Context, name: LimitName, key?: string): Promise<void>;
  /** Takes one from a bucket that no answer tells of. @returns whether there was one. */
  spend(name: LimitName, key: string): Promise<boolean>;
  /** The limits that go by path and address. */
  byPath: Middleware;
  /** `take` as middleware. */
  limit(name: LimitName, key: (ctx: Context) => string): Middleware;
}

/** The rate limits of a tenant; their sizes are read from its settings at each request. */
export function createRateLimits(store: Store, directory: Directory, clock: Clock): RateLimits {
  const limits = store.collection('limits');
  const recent = createRecency(MOST_COUNTERS);
  /** @returns what is left; negative when there was none. */
  const takeOne = async (bucket: Bucket, name: LimitName, key: string, now: number): Promise<number> => {
    const id = `${name}:${createHash('sha256').update(key).digest('base64url')}`;
    let left = bucket.capacity - 1;
    const update = (current: LimitRecord | undefined): LimitRecord => {
      const level = refill(bucket, current, now);
      left = level - 1;
      const tokens = left >= 0 ? left : level;
      return {
        id,
        tokens,
        at: now,
        expiresAt: Math.ceil(now / 1000 + secondsTo(bucket, tokens, bucket.capacity)) + 1,
      };
    };
    const evicted = recent.touch(name, id);
    if (evicted !== undefined) await limits.delete(evicted);
    const known = await limits.update(id, update);
    // A racer may have come first; the update then counts for both.
    if (known === undefined) await limits.insert(update(undefined)).catch(() => limits.update(id, update));
    return left;
  };
  const take = async (ctx: Context, name: LimitName, key: string): Promise<void> => {
    const [bucket, now] = [limitOf(directory, name), clock()];
    answer(ctx, bucket, await takeOne(bucket, name, key, now), now);
  };
  const takeFrom = (ctx: Context, name: LimitName, key?: string): Promise<void> =>
    take(ctx, name, key === undefined ? addressKey(ctx.ip) : `${addressKey(ctx.ip)}\n${key}`);
  return {
    take,
    takeFrom,
    spend: async (name, key) => (await takeOne(limitOf(directory, name), name, key, clock())) >= 0,
    limit: (name, key) => (ctx, next) => take(ctx, name, key(ctx)).then(next),
    byPath: (ctx, next) =>
      // A preflight has no answer of an endpoint to be limited.
      ctx.method === 'OPTIONS' ? next() : takeFrom(ctx, limitOfPath(ctx.path)).then(next),
  };
}

/** The bucket of a limit: the tenant's where it sets one, else the default. */
function limitOf(directory: Directory, name: LimitName): Bucket {
  const { rateLimits, suspiciousIpThrottling } = protectionSettings(directory);
  const own = rateLimits[name];
  if (own !== undefined) return own;
  if (name !== 'signup') return DEFAULTS[name];
  const { max_attempts: capacity, rate } = suspiciousIpThrottling.stage['pre-user-registration'];
  return { capacity, perMinute: 60_000 / rate };
}

/** Counters at most, of each limit: a million addresses must not fill the memory. */
const MOST_COUNTERS = 20_000;

/**
 * Keeps the counters that were used lately. Each limit has its own room, so that nobody gets rid of one by
 * filling another's; locks after failed logins are no counters of these.
 */
function createRecency(most: number): { touch(name: string, id: string): string | undefined } {
  const rooms = new Map<string, Set<string>>();
  return {
    touch: (name, id) => {
      const room = rooms.get(name) ?? new Set();
      rooms.set(name, room);
      room.delete(id);
      room.add(id);
      if (room.size <= most) return undefined;
      const [oldest] = room;
      if (oldest !== undefined) room.delete(oldest);
      return oldest;
    },
  };
}

function refill({ capacity, perMinute }: Bucket, current: LimitRecord | undefined, now: number): number {
  if (current === undefined) return capacity;
  return Math.min(capacity, current.tokens + (Math.max(0, now - current.at) * perMinute) / 60_000);
}

/** Seconds until a bucket that holds `from` holds `to`. */
function secondsTo({ perMinute }: Bucket, from: number, to: number): number {
  return (Math.max(0, to - from) / perMinute) * 60;
}

function answer(ctx: Context, bucket: Bucket, left: number, now: number): void {
  const refused = left < 0;
  const remaining = Math.max(0, Math.floor(left));
  const level = refused ? left + 1 : left;
  // Of several limits the headers tell the one that is nearest.
  const told = ctx.response.get('X-RateLimit-Remaining');
  if (!refused && told !== '' && Number(told) <= remaining) return;
  ctx.set('X-RateLimit-Limit', String(bucket.capacity));
  ctx.set('X-RateLimit-Remaining', String(remaining));
  ctx.set('X-RateLimit-Reset', String(Math.ceil(now / 1000 + secondsTo(bucket, level, bucket.capacity))));
  if (!refused) return;
  ctx.set('Retry-After', String(Math.max(1, Math.ceil(secondsTo(bucket, level, 1)))));
  throw new AuthError(429, 'too_many_requests', TOO_MANY);
}
