// Rate limits as token buckets (docs/operating.md), with the X-RateLimit headers. Counters may be lost in a crash.
// docs/decisions/passwords-protection.md#token-buckets-refill-continuously
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { type Bucket, type Limit, type Limits, NETWORK, type Times } from '../../http/limits.ts';
import { CONSOLE_DIRECTORY } from '../../records/administrators.ts';
import { type AttackProtection, attackProtectionSchema } from '../../records/protection.ts';
import type { TenantFile } from '../../records/tenant.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Measures } from '../../runtime/measures.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { addressKey, networkKey } from './callers.ts';

// The arithmetic of token buckets.

/** A bucket's level at a time. */
export interface Level {
  tokens: number;
  /** Epoch milliseconds when `tokens` was computed. */
  at: number;
}

/**
 * Takes a token from a bucket (1), gives one back (-1), or only refills it (0).
 * @param current undefined for a full bucket.
 * @returns the new level, and the tokens left; negative when there was none, and none was taken.
 */
export function updateLevel(
  { capacity, perMinute }: Bucket,
  current: Level | undefined,
  { now, taken }: { now: number; taken: 1 | 0 | -1 },
): { level: Level; left: number } {
  const since = current === undefined ? 0 : (Math.max(0, now - current.at) * perMinute) / 60_000;
  const tokens = Math.min(capacity, (current?.tokens ?? capacity) + since);
  const left = Math.min(capacity, tokens - taken);
  return { level: { tokens: left >= 0 ? left : tokens, at: now }, left };
}

/** Returns the seconds until a bucket refills from `from` to `to`. */
function secondsTo({ perMinute }: Bucket, from: number, to: number): number {
  return (Math.max(0, to - from) / perMinute) * 60;
}

/** Returns when a bucket is full again, epoch seconds. Its counter can then be deleted. */
function fullAt(bucket: Bucket, { tokens, at }: Level): number {
  return Math.ceil(at / 1000 + secondsTo(bucket, tokens, bucket.capacity)) + 1;
}

/** The text of the API contract (docs/wire/errors.md). */
const TOO_MANY_DESCRIPTION =
  'Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.';

export interface RateLimits {
  /**
   * Takes a token and sets the headers.
   * @param key what the bucket is for: a user, an e-mail address …
   * @throws AuthError 429 `too_many_requests` when the bucket is empty.
   */
  take(ctx: Context, limit: Limit, key: string): Promise<void>;
  /**
   * As {@link take}, for the bucket of the client's address, combined with `key` if given. Without a key, the address's
   * network has a bucket, too, so that a network with many addresses is not let in as often as it has addresses.
   */
  takeFrom(ctx: Context, limit: Limit, key?: string): Promise<void>;
  /** Takes a token without setting headers. @returns whether there was one. */
  spend(limit: Limit, key: string): Promise<boolean>;
  /** Returns whether {@link spend} would find a token now. */
  hasLeft(limit: Limit, key: string): Promise<boolean>;
  /** Gives a token back. */
  giveBack(limit: Limit, key: string): Promise<void>;
}

interface RateLimitDependencies {
  store: Store;
  config: Config;
  clock: Clock;
  /** The limits whose requests do not wait for the store: each process counts them, and shares its counts later. */
  routeLimits: ReadonlySet<Limit>;
  measures?: Pick<Measures, 'limited'> | undefined;
}

/** Returns the rate limits of a tenant. Their sizes are read from its settings at each request. */
export function createRateLimits({
  store,
  config,
  clock,
  routeLimits,
  measures,
}: RateLimitDependencies): RateLimits {
  const inStore = storedCounters(store, clock);
  const perProcess = store.exclusive === true ? localCounters(clock) : syncedCounters(store, clock);
  const countersOf = (limit: Limit) => (routeLimits.has(limit) ? perProcess : inStore);
  const counterOf = (limit: Limit, key: string, times?: Times): Counter => ({
    name: limit.name,
    key,
    bucket: timesOf(tenantBucket(config, limit), times),
  });
  /** Counts a refusal. @param left the tokens left; negative when there was none. */
  const countRefusal = (limit: Limit, left: number): number => {
    if (left < 0) measures?.limited(limit.name);
    return left;
  };
  const takeFor = async (ctx: Context, limit: Limit, key: string, times?: Times): Promise<number> => {
    const counter = counterOf(limit, key, times);
    const { bucket } = counter;
    const left = await countersOf(limit).take(counter, 1);
    setHeaders(ctx, bucket, countRefusal(limit, left), clock());
    return left / bucket.capacity;
  };
  const take = async (ctx: Context, limit: Limit, key: string): Promise<void> => {
    await takeFor(ctx, limit, key);
  };
  const takeFrom = async (ctx: Context, limit: Limit, key?: string): Promise<void> => {
    const address = addressKey(ctx.ip);
    if (key !== undefined) return take(ctx, limit, `${address}\n${key}`);
    await take(ctx, limit, address);
    const { network = NETWORK, everybody } = limit;
    const left = await takeFor(ctx, limit, `network ${networkKey(ctx.ip)}`, network);
    if (everybody !== undefined && left < QUIET_NETWORK) await takeFor(ctx, limit, 'everybody', everybody);
  };
  return {
    take,
    takeFrom,
    spend: async (limit, key) =>
      countRefusal(limit, await countersOf(limit).take(counterOf(limit, key), 1)) >= 0,
    hasLeft: async (limit, key) => (await countersOf(limit).left(counterOf(limit, key))) >= 1,
    giveBack: async (limit, key) => {
      await countersOf(limit).take(counterOf(limit, key), -1);
    },
  };
}

/** The part of its bucket that a quiet network still has. Such networks may exceed what there is for all. */
const QUIET_NETWORK = 0.9;

function timesOf({ capacity, perMinute }: Bucket, times: Times = { capacity: 1, perMinute: 1 }): Bucket {
  return { capacity: capacity * times.capacity, perMinute: perMinute * times.perMinute };
}

/** Returns the bucket of a limit: the tenant's if it sets one, otherwise the default. */
function tenantBucket(config: Config, limit: Limit): Bucket {
  const { rateLimits, suspiciousIpThrottling } = protectionSettings(config);
  const configured = rateLimits[limit.name];
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

// Levels of token buckets, in this process or in the store for all processes. Each limit is bounded separately, so
// that filling one limit evicts no counter of another.

/** A token taken from a bucket (1), or given back (-1). */
type TokenChange = 1 | -1;

interface Counters {
  /**
   * Takes a token from a bucket, atomically, or gives one back.
   * @returns the tokens left; negative when there was none, and none was taken.
   */
  take(of: Counter, taken: TokenChange): Promise<number>;
  /** Returns the tokens left, and takes none. */
  left(of: Counter): Promise<number>;
}

interface Counter {
  name: string;
  key: string;
  bucket: Bucket;
}

/** How many counters of each limit are kept, so that addresses cannot fill the memory. */
const MAX_COUNTERS = 20_000;

/** How many are evicted at a time: finding the oldest entry of a map skips all that were deleted before it. */
const EVICTION_BATCH = 100;

/** Marks an entry as used. @returns the evicted entries: the least recently used of its limit. */
function touch<T>(byLimit: Map<string, Map<string, T>>, name: string, key: string, entry: T): T[] {
  const entries = byLimit.get(name) ?? new Map<string, T>();
  byLimit.set(name, entries);
  entries.delete(key);
  entries.set(key, entry);
  if (entries.size <= MAX_COUNTERS) return [];
  const evicted: T[] = [];
  for (const [oldest, evictedEntry] of entries) {
    if (evicted.length === EVICTION_BATCH) break;
    entries.delete(oldest);
    evicted.push(evictedEntry);
  }
  return evicted;
}

// docs/decisions/store.md#rate-limit-counters-are-not-written-to-disk
/**
 * Returns counters for the only process of a store. Limits on every request use them, because the store would be
 * slow.
 */
function localCounters(clock: Clock): Counters {
  const byLimit = new Map<string, Map<string, Level>>();
  return {
    take: ({ name, key, bucket }, taken) => {
      const { level, left } = updateLevel(bucket, byLimit.get(name)?.get(key), { now: clock(), taken });
      touch(byLimit, name, key, level);
      return Promise.resolve(left);
    },
    left: ({ name, key, bucket }) => Promise.resolve(leftIn(bucket, byLimit.get(name)?.get(key), clock())),
  };
}

/** Returns counters in the store, shared by all processes. Their keys are hashed. They are deleted at a restart. */
function storedCounters(store: Store, clock: Clock): Counters {
  const limits = store.collection('limits');
  const byLimit = new Map<string, Map<string, string>>();
  return {
    take: async ({ name, key, bucket }, taken) => {
      const id = counterId(name, key);
      await Promise.all(touch(byLimit, name, id, id).map((evicted) => limits.delete(evicted)));
      const now = clock();
      let left = 0;
      const next = (current?: Level) => {
        const updated = updateLevel(bucket, current, { now, taken });
        left = updated.left;
        return { id, ...updated.level, expiresAt: fullAt(bucket, updated.level) };
      };
      for (;;) {
        if ((await limits.update(id, next)) !== undefined) return left;
        try {
          await limits.insert(next());
          return left;
        } catch (thrown) {
          // Another process has inserted it; the next update adds to that.
          if (!(thrown instanceof UniqueKeyError)) throw thrown;
        }
      }
    },
    left: async ({ name, key, bucket }) => leftIn(bucket, await limits.get(counterId(name, key)), clock()),
  };
}

/** Interval in milliseconds at which this process shares what it has taken, and learns what others have taken. */
const SYNC_INTERVAL = 250;
/** How many counters are shared in one interval. */
const SYNC_BATCH = 500;

/** A counter of this process: the level as far as it is known here, and what other processes do not know of yet. */
interface LocalCounter extends Counter {
  level: Level;
  unsynced: number;
}

// docs/decisions/passwords-protection.md#processes-share-the-counts-of-route-limits-late-and-all-other-counts-at-once
/**
 * Returns counters of several processes for limits on every request, which do not wait for the store. Each process
 * counts for itself, and shares the level with the others once a bucket is half empty. Each process may therefore
 * spend a full bucket once; the refill is shared.
 */
function syncedCounters(store: Store, clock: Clock): Counters {
  const limits = store.collection('limits');
  const byLimit = new Map<string, Map<string, LocalCounter>>();
  const unsyncedCounters = new Set<LocalCounter>();
  let isSyncing = false;
  const sync = async (counter: LocalCounter): Promise<void> => {
    const { name, key, bucket } = counter;
    const id = counterId(name, key);
    const unsynced = counter.unsynced;
    counter.unsynced = 0;
    const now = clock();
    try {
      const { tokens, at } = await limits.upsert(id, (current) => {
        const { level } = updateLevel(bucket, current, { now, taken: 0 });
        const synced = { tokens: Math.max(0, level.tokens - unsynced), at: now };
        return { id, ...synced, expiresAt: fullAt(bucket, synced) };
      });
      // Tokens may have been taken while the level was being shared.
      counter.level = { tokens: Math.max(0, tokens - counter.unsynced), at };
    } catch {
      // Requests report faults of the store. The tokens are shared with the next interval.
      counter.unsynced += unsynced;
    }
  };
  const scheduleSync = () => {
    if (isSyncing || unsyncedCounters.size === 0) return;
    isSyncing = true;
    setTimeout(async () => {
      const batch = [...unsyncedCounters].slice(0, SYNC_BATCH);
      for (const one of batch) unsyncedCounters.delete(one);
      await Promise.all(batch.map(sync));
      isSyncing = false;
      scheduleSync();
    }, SYNC_INTERVAL).unref();
  };
  return {
    take: async ({ name, key, bucket }, taken) => {
      const before = byLimit.get(name)?.get(key);
      const { level, left } = updateLevel(bucket, before?.level, { now: clock(), taken });
      const counter: LocalCounter = before ?? { name, key, bucket, level, unsynced: 0 };
      counter.bucket = bucket;
      counter.level = level;
      if (left >= 0) counter.unsynced += taken;
      for (const evicted of touch(byLimit, name, key, counter)) unsyncedCounters.delete(evicted);
      if (level.tokens < bucket.capacity / 2) unsyncedCounters.add(counter);
      scheduleSync();
      return left;
    },
    left: ({ name, key, bucket }) =>
      Promise.resolve(leftIn(bucket, byLimit.get(name)?.get(key)?.level, clock())),
  };
}

const leftIn = (bucket: Bucket, current: Level | undefined, now: number): number =>
  updateLevel(bucket, current, { now, taken: 0 }).left;

const counterId = (name: string, key: string) => `${name}:${sha256(key)}`;

// The tenant's attack protection settings, with defaults.

/** Parsed once for each version of the tenant's settings, because every request needs them. */
const cache = new WeakMap<object, AttackProtection>();

/** Returns the tenant's `attackProtection`, with the defaults of what the record lacks. */
export function protectionSettings(config: Config): AttackProtection {
  const settings = config.settings();
  const cached = cache.get(settings);
  if (cached !== undefined) return cached;
  const parsed = attackProtectionSchema.parse(settings.attackProtection);
  cache.set(settings, parsed);
  return parsed;
}

/** The settings of the console's own directory. */
const OF_ADMINISTRATORS = attackProtectionSchema.parse({});

/**
 * Returns the settings for attempts at a connection. Those of administrators are the defaults: editors change the
 * tenant's, and could otherwise guess an owner's password without limit.
 */
export function protectionOf(config: Config, { connection }: { connection: string }): AttackProtection {
  return connection === CONSOLE_DIRECTORY ? OF_ADMINISTRATORS : protectionSettings(config);
}

// docs/decisions/operating.md#an-unknown-limit-in-the-tenant-file-is-a-warning
/** Returns a warning for each limit of a tenant file that does not exist, such as a misspelt one. */
export function unknownLimits(
  { attackProtection }: Pick<TenantFile, 'attackProtection'>,
  limits: Limits,
): string[] {
  return Object.keys(attackProtection.rateLimits)
    .filter((name) => !Object.hasOwn(limits, name))
    .map((name) => `attackProtection.rateLimits.${name} is not known here: it is kept, and has no effect`);
}
