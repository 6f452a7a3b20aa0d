// Levels of token buckets, in this process or in the store for all processes. Each limit is bounded separately, so
// that filling one limit evicts no counter of another.
import type { Bucket } from '../../records/limits.ts';
import type { Clock } from '../../runtime/clock.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import { fullAt, type Level, updateLevel } from './bucket.ts';

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

/**
 * Returns counters for the only process of a store. Limits on every request use them, because the store would be
 * slow.
 */
export function localCounters(clock: Clock): Counters {
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
export function storedCounters(store: Store, clock: Clock): Counters {
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

/**
 * Returns counters of several processes for limits on every request, which do not wait for the store. Each process
 * counts for itself, and shares the level with the others once a bucket is half empty. Each process may therefore
 * spend a full bucket once; the refill is shared.
 */
export function syncedCounters(store: Store, clock: Clock): Counters {
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
