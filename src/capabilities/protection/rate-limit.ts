// Rate limits as token buckets (docs/operating.md), with the X-RateLimit headers. Counters may be lost in a crash.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import {
  type Bucket,
  type Limit,
  type LimitName,
  type Limits,
  NETWORK,
  type Times,
} from '../../records/limits.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Measures } from '../../runtime/measures.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { addressKey, networkKey } from './addresses.ts';
import { secondsTo } from './bucket.ts';
import { localCounters, storedCounters, syncedCounters } from './counters.ts';
import { protectionSettings } from './settings.ts';

/** The text of the API contract (docs/wire/errors.md). */
const TOO_MANY_DESCRIPTION =
  'Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.';

export interface RateLimits {
  /**
   * Takes a token and sets the headers.
   * @param key what the bucket is for: a user, an e-mail address …
   * @throws AuthError 429 `too_many_requests` when the bucket is empty.
   */
  take(ctx: Context, name: LimitName, key: string): Promise<void>;
  /**
   * As {@link take}, for the bucket of the client's address, combined with `key` if given. Without a key, the address's
   * network has a bucket, too, so that a network with many addresses is not let in as often as it has addresses.
   */
  takeFrom(ctx: Context, name: LimitName, key?: string): Promise<void>;
  /** Takes a token without setting headers. @returns whether there was one. */
  spend(name: LimitName, key: string): Promise<boolean>;
  /** Returns whether {@link spend} would find a token now. */
  hasLeft(name: LimitName, key: string): Promise<boolean>;
  /** Gives a token back. */
  giveBack(name: LimitName, key: string): Promise<void>;
}

interface RateLimitDependencies {
  store: Store;
  config: Config;
  clock: Clock;
  /** All declared limits. */
  limits: Limits;
  /** The limits whose requests do not wait for the store: each process counts them, and shares its counts later. */
  routeLimits: ReadonlySet<string>;
  measures?: Pick<Measures, 'limited'> | undefined;
}

/** Returns the rate limits of a tenant. Their sizes are read from its settings at each request. */
export function createRateLimits({
  store,
  config,
  clock,
  limits,
  routeLimits,
  measures,
}: RateLimitDependencies): RateLimits {
  const inStore = storedCounters(store, clock);
  const perProcess = store.exclusive === true ? localCounters(clock) : syncedCounters(store, clock);
  const countersOf = (name: LimitName) => (routeLimits.has(name) ? perProcess : inStore);
  const bucketOf = (name: LimitName): Bucket => {
    const limit = limits[name];
    if (limit === undefined) throw new Error(`a limit that nobody declares: ${name}`);
    return tenantBucket(config, name, limit);
  };
  /** Counts a refusal. @param left the tokens left; negative when there was none. */
  const countRefusal = (name: LimitName, left: number): number => {
    if (left < 0) measures?.limited(name);
    return left;
  };
  const takeFor = async (ctx: Context, name: LimitName, key: string, times?: Times): Promise<number> => {
    const bucket = timesOf(bucketOf(name), times);
    const left = await countersOf(name).take({ name, key, bucket }, 1);
    setHeaders(ctx, bucket, countRefusal(name, left), clock());
    return left / bucket.capacity;
  };
  const take = async (ctx: Context, name: LimitName, key: string): Promise<void> => {
    await takeFor(ctx, name, key);
  };
  const takeFrom = async (ctx: Context, name: LimitName, key?: string): Promise<void> => {
    const address = addressKey(ctx.ip);
    if (key !== undefined) return take(ctx, name, `${address}\n${key}`);
    await take(ctx, name, address);
    const { network = NETWORK, everybody } = limits[name] ?? {};
    const left = await takeFor(ctx, name, `network ${networkKey(ctx.ip)}`, network);
    if (everybody !== undefined && left < QUIET_NETWORK) await takeFor(ctx, name, 'everybody', everybody);
  };
  return {
    take,
    takeFrom,
    spend: async (name, key) =>
      countRefusal(name, await countersOf(name).take({ name, key, bucket: bucketOf(name) }, 1)) >= 0,
    hasLeft: async (name, key) => (await countersOf(name).left({ name, key, bucket: bucketOf(name) })) >= 1,
    giveBack: async (name, key) => {
      await countersOf(name).take({ name, key, bucket: bucketOf(name) }, -1);
    },
  };
}

/** The part of its bucket that a quiet network still has. Such networks may exceed what there is for all. */
const QUIET_NETWORK = 0.9;

function timesOf({ capacity, perMinute }: Bucket, times: Times = { capacity: 1, perMinute: 1 }): Bucket {
  return { capacity: capacity * times.capacity, perMinute: perMinute * times.perMinute };
}

/** Returns the bucket of a limit: the tenant's if it sets one, otherwise the default. */
function tenantBucket(config: Config, name: string, limit: Limit): Bucket {
  const { rateLimits, suspiciousIpThrottling } = protectionSettings(config);
  const configured = rateLimits[name];
  if (configured !== undefined || limit.stage === undefined) return configured ?? limit;
  const { max_attempts: capacity, rate } = suspiciousIpThrottling.stage[limit.stage];
  return { capacity, perMinute: 60_000 / rate };
}

function setHeaders(ctx: Context, bucket: Bucket, left: number, now: number): void {
  const isRefused = left < 0;
  const remaining = Math.max(0, Math.floor(left));
  const level = isRefused ? left + 1 : left;
  // With several limits, the headers show the one with the fewest requests left.
  const sentRemaining = ctx.response.get('x-ratelimit-remaining');
  if (!isRefused && sentRemaining !== '' && Number(sentRemaining) <= remaining) return;
  const { res } = ctx;
  res.setHeader('x-ratelimit-limit', String(bucket.capacity));
  res.setHeader('x-ratelimit-remaining', String(remaining));
  res.setHeader(
    'x-ratelimit-reset',
    String(Math.ceil(now / 1000 + secondsTo(bucket, level, bucket.capacity))),
  );
  if (!isRefused) return;
  ctx.set('retry-after', String(Math.max(1, Math.ceil(secondsTo(bucket, level, 1)))));
  throw new AuthError(429, 'too_many_requests', TOO_MANY_DESCRIPTION);
}
