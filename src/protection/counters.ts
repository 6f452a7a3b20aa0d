// The levels of token buckets, in this process or in the store for all processes. Bounded for each limit separately, so
// that filling one limit evicts no counter of another.
import { sha256 } from '../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';

/** A bucket's level at a time. */
export interface Level {
  tokens: number;
  /** Epoch milliseconds when `tokens` was computed. */
  at: number;
}

interface Counters {
  /**
   * Changes a level atomically.
   * @param change computes the next level; called again after losing a race.
   * @param fullAt epoch seconds when the bucket is full again and the counter can go.
   */
  change(
    name: string,
    key: string,
    change: (current: Level | undefined) => { level: Level; fullAt: number },
  ): Promise<void>;
}

/** Counters of each limit at most, so that addresses cannot fill the memory. */
const MOST = 20_000;

/** As many go at once: finding the oldest entry of a map passes all those that were deleted before it. */
const EVICTED = 100;

/** Marks an entry as used. @returns the evicted entries: the least recently used of its limit. */
function touch<T>(rooms: Map<string, Map<string, T>>, name: string, key: string, entry: T): T[] {
  const room = rooms.get(name) ?? new Map<string, T>();
  rooms.set(name, room);
  room.delete(key);
  room.set(key, entry);
  if (room.size <= MOST) return [];
  const evicted: T[] = [];
  for (const [oldest, its] of room) {
    if (evicted.length === EVICTED) break;
    room.delete(oldest);
    evicted.push(its);
  }
  return evicted;
}

/** Counters of this process: for limits on every request, which the store would slow down. */
export function localCounters(): Counters {
  const rooms = new Map<string, Map<string, Level>>();
  return {
    change: async (name, key, change) => {
      touch(rooms, name, key, change(rooms.get(name)?.get(key)).level);
    },
  };
}

/** Counters in the store for all processes, under hashed keys, not kept across a restart. */
export function storedCounters(store: Store): Counters {
  const limits = store.collection('limits');
  const rooms = new Map<string, Map<string, string>>();
  return {
    change: async (name, key, change) => {
      const id = `${name}:${sha256(key)}`;
      await Promise.all(touch(rooms, name, id, id).map((evicted) => limits.delete(evicted)));
      const next = (current?: Level) => {
        const { level, fullAt } = change(current);
        return { id, ...level, expiresAt: fullAt };
      };
      for (;;) {
        if ((await limits.update(id, next)) !== undefined) return;
        try {
          return await limits.insert(next());
        } catch (thrown) {
          // Lost a race: the next update counts for both.
          if (!(thrown instanceof UniqueKeyError)) throw thrown;
        }
      }
    },
  };
}
