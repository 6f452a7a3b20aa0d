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
import { type Bucket, type LimitName, limitOf, limitOfPath } from './limits.ts';

/** The message that the spec names: it points to the headers. */
const TOO_MANY =
  'Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.';

export interface RateLimits {
  /**
   * Takes one from a bucket and sets the headers.
   * @param key whose bucket it is: a user, an address …
   * @throws AuthError 429 `too_many_requests` when the bucket is empty.
   */
  take(ctx: Context, name: LimitName, key: string): Promise<void>;
  /** The limits that go by path and address. */
  byPath: Middleware;
  /** The same as middleware. */
  limit(name: LimitName, key: (ctx: Context) => string): Middleware;
}

/** The rate limits of a tenant; their sizes are read from its settings at each request. */
export function createRateLimits(store: Store, directory: Directory, clock: Clock): RateLimits {
  const limits = store.collection('limits');
  const recent = createRecency(MOST_COUNTERS);
  const take = async (ctx: Context, name: LimitName, key: string): Promise<void> => {
    const bucket = limitOf(directory, name);
    const id = `${name}:${createHash('sha256').update(key).digest('base64url')}`;
    const now = clock();
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
    answer(ctx, bucket, left, now);
  };
  return {
    take,
    limit: (name, key) => (ctx, next) => take(ctx, name, key(ctx)).then(next),
    byPath: async (ctx, next) => {
      const name = ctx.method === 'OPTIONS' ? undefined : limitOfPath(ctx.path);
      if (name !== undefined) await take(ctx, name, addressKey(ctx.ip));
      await next();
    },
  };
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
