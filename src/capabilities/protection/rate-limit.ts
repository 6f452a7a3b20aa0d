// Rate limits as token buckets (docs/reference/limits.md), with the X-RateLimit headers. Counters may be lost in a
// crash.
// docs/understand/decisions/passwords-protection.md#token-buckets-refill-continuously
import type { Context } from 'koa';
import { addressKey, addressList, networkKey } from '../../http/addresses.ts';
import { AuthError } from '../../http/errors.ts';
import { type Bucket, type Limit, type Limits, NETWORK, type Times } from '../../http/limits.ts';
import type { EventBounds } from '../../records/base/log-events.ts';
import { type AttackProtection, attackProtectionSchema } from '../../records/tenant/protection.ts';
import type { TenantFile } from '../../records/tenant/tenant.ts';
import { CONSOLE_DIRECTORY } from '../../records/users/administrators.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Measures } from '../../runtime/measures.ts';
import { raiseStanding } from '../../runtime/requester.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { EventBudget, TenantEvent } from '../../tenant/events.ts';

// Known callers: browsers and addresses that have logged in to an account before. They have limits of their own, so
// that guesses and messages of strangers cannot lock the owner out.

/** The sender of a request. */
export interface Caller {
  ip: string;
  /** The browser's identifier (a cookie's hash), unless a page of another site made the request. */
  browser?: string | undefined;
  /** Whether this response sets the cookie. The browser may not keep it. */
  isNewBrowser?: boolean;
}

/** A caller that has logged in to the account before. */
interface KnownCaller {
  /** The key that limits of this caller are counted under, a hash. */
  key: string;
  by: 'browser' | 'address';
}

/** What the store knows of a caller. */
export interface CallerLookup {
  /** Undefined for a stranger. */
  known: KnownCaller | undefined;
  /** The keys of the caller to be written after a login, and whether any of them is new. */
  keysToWrite: readonly string[];
  isNew: boolean;
}

export interface KnownCallers {
  // docs/understand/decisions/passwords-protection.md#known-callers-of-an-account-have-limits-of-their-own
  /**
   * Returns the caller if it logged in to the account in the last ninety days.
   * @param userId undefined when there is no such account; the lookup then takes the same time, so that timing does
   *   not reveal it.
   * @returns undefined for a stranger.
   */
  recognize(userId: string | undefined, caller: Caller): Promise<KnownCaller | undefined>;
  /** As {@link recognize}, with what {@link remember} would otherwise read again. */
  lookUp(userId: string | undefined, caller: Caller): Promise<CallerLookup>;
  /** Remembers a caller that has logged in. @param lookup the result of {@link lookUp} in this login. */
  remember(userId: string, caller: Caller, lookup?: CallerLookup): Promise<void>;
  /** Forgets all callers of an account, for example after a password reset. */
  forgetAllOf(userId: string): Promise<void>;
}

const KNOWN_SECONDS = 90 * 86_400;
/** A record is not written again within this time. */
const RENEW_SECONDS = 86_400;
/** How many callers of an account are kept. The least recently seen are deleted first. */
const MAX_CALLERS = 50;

/** Returns a caller's keys, the most specific first. */
export function callerKeys({ ip, browser, isNewBrowser = false }: Caller): string[] {
  const keys = [...(browser === undefined ? [] : [`browser:${browser}`]), `address:${addressKey(ip)}`];
  return isNewBrowser ? keys.reverse() : keys;
}

/**
 * Returns the keys that a challenge is requested under: the browser alone, because others may share its address. A
 * new browser also has the address, because it may not keep the cookie.
 */
export function askersOf(caller: Caller): string[] {
  const keys = callerKeys(caller);
  return caller.isNewBrowser === true ? keys : keys.slice(0, 1);
}

/** Returns the known callers of a store. Their keys are hashed. */
export function createKnownCallers(store: Store, clock: Clock): KnownCallers {
  const callers = store.collection('knownCallers');
  const idOf = (userId: string, key: string) => sha256(`${userId}\n${key}`);
  const lookUp = async (userId: string | undefined, caller: Caller): Promise<CallerLookup> => {
    const keys = callerKeys(caller);
    const found = await Promise.all(keys.map((key) => callers.get(idOf(userId ?? '', key))));
    const until = epochSeconds(clock) + KNOWN_SECONDS;
    const index = found.findIndex((one) => one !== undefined);
    const id = found[index]?.id;
    if (id !== undefined) raiseStanding('known');
    const by = keys[index]?.startsWith('browser:') === true ? 'browser' : 'address';
    return {
      known: id === undefined ? undefined : { key: id, by },
      keysToWrite: keys.filter((_key, at) => (found[at]?.expiresAt ?? 0) <= until - RENEW_SECONDS),
      isNew: found.includes(undefined),
    };
  };
  /** Deletes the least recently seen callers when there are too many. */
  const makeRoom = async (userId: string, added: number): Promise<void> => {
    const all = await callers.findBy('user', userId);
    const oldest = [...all]
      .sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0))
      .slice(0, Math.max(0, all.length + added - MAX_CALLERS));
    await Promise.all(oldest.map((one) => callers.delete(one.id)));
  };
  return {
    recognize: async (userId, caller) => (await lookUp(userId, caller)).known,
    lookUp,
    remember: async (userId, caller, lookup) => {
      const { keysToWrite, isNew } = lookup ?? (await lookUp(userId, caller));
      const expiresAt = epochSeconds(clock) + KNOWN_SECONDS;
      await Promise.all([
        ...keysToWrite.map((key) => callers.put({ id: idOf(userId, key), user_id: userId, expiresAt })),
        isNew && makeRoom(userId, keysToWrite.length),
      ]);
    },
    forgetAllOf: async (userId) => {
      await callers.deleteBy('user', userId);
    },
  };
}

// Lists of client addresses in the tenant's protection settings.

/**
 * Each list is compiled once, because every login checks three of them. A change of the settings brings new arrays.
 */
const compiled = new WeakMap<readonly string[], (ip: string) => boolean>();

/** Returns whether a list of IP addresses and CIDR ranges contains an address. The list must not be mutated. */
export function isListed(list: readonly string[], ip: string): boolean {
  const known = compiled.get(list) ?? addressList(list);
  compiled.set(list, known);
  return known(ip);
}

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
function updateLevel(
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

/** The text of the API contract (docs/reference/wire/errors.md). */
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
  /** @param left the tokens left; negative when there was none. */
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

// docs/understand/decisions/store.md#rate-limit-counters-are-not-written-to-disk
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

// docs/understand/decisions/passwords-protection.md#processes-share-the-counts-of-route-limits-late-and-all-other-counts-at-once
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

// docs/understand/decisions/operating.md#an-unknown-limit-in-the-tenant-file-is-a-warning
/** Returns a warning for each limit of a tenant file that does not exist, such as a misspelt one. */
export function unknownLimits(
  { attackProtection }: Pick<TenantFile, 'attackProtection'>,
  limits: Limits,
): string[] {
  return Object.keys(attackProtection.rateLimits)
    .filter((name) => !Object.hasOwn(limits, name))
    .map((name) => `attackProtection.rateLimits.${name} is not known here: it is kept, and has no effect`);
}

// Limits the log events of unknown users, by address and in total, so that strangers cannot fill the store.
// docs/understand/decisions/sessions-logout.md#a-refused-logout-changes-nothing

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
