// Where the levels of buckets are kept: in this process, or in the store for all processes. Either way they are
// bounded, and each limit has its own room, so that nobody gets rid of one counter by filling another limit's;
// locks after failed logins are no counters of these.
import { sha256 } from '../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';

/** A bucket's level at a time. */
export interface Level {
  tokens: number;
  /** Epoch milliseconds when `tokens` was computed. */
  at: number;
}

export interface Counters {
  /**
   * Changes a level; atomic.
   * @param change makes the next level of the present one; may be called again when a racer came first.
   * @param fullAt epoch seconds from when on the counter says nothing any more.
   */
  change(
    name: string,
    key: string,
    change: (current: Level | undefined) => { level: Level; fullAt: number },
  ): Promise<void>;
}

/** Counters at most, of each limit: a million addresses must not fill the memory. */
const MOST = 20_000;

/** Keeps the entries of each name that were used lately. @returns which one goes. */
function touch<T>(rooms: Map<string, Map<string, T>>, name: string, key: string, entry: T) {
  const room = rooms.get(name) ?? new Map<string, T>();
  rooms.set(name, room);
  room.delete(key);
  room.set(key, entry);
  if (room.size <= MOST) return undefined;
  const [oldest] = room;
  if (oldest !== undefined) room.delete(oldest[0]);
  return oldest?.[1];
}

/** Counters of this process alone: for limits that every request is under, which a store would slow down. */
export function localCounters(): Counters {
  const rooms = new Map<string, Map<string, Level>>();
  return {
    change: async (name, key, change) => {
      touch(rooms, name, key, change(rooms.get(name)?.get(key)).level);
    },
  };
}

/** Counters in the store's volatile collection, whose keys show no user or address: for all processes. */
export function storedCounters(store: Store): Counters {
  const limits = store.collection('limits');
  const rooms = new Map<string, Map<string, string>>();
  return {
    change: async (name, key, change) => {
      const id = `${name}:${sha256(key)}`;
      const evicted = touch(rooms, name, id, id);
      if (evicted !== undefined) await limits.delete(evicted);
      const next = (current?: Level) => {
        const { level, fullAt } = change(current);
        return { id, ...level, expiresAt: fullAt };
      };
      for (;;) {
        if ((await limits.update(id, next)) !== undefined) return;
        try {
          return await limits.insert(next());
        } catch (thrown) {
          // A racer came first; the update then counts for both.
          if (!(thrown instanceof UniqueKeyError)) throw thrown;
        }
      }
    },
  };
}
