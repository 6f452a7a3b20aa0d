// Remembers keys for a limited time. They are forgotten in groups, which is cheaper than one by one.

interface RecentKeys {
  /** @param now seconds, never less than before. */
  has(key: string, now: number): boolean;
  /** Remembers a key from now on. */
  add(key: string, now: number): void;
  /** The number of remembered keys. */
  size(): number;
  keys(): Iterable<string>;
}

/** Keys added within this time form a group and are forgotten together, seconds. */
const GROUP_SECONDS = 60;

/** Makes a memory of keys. @param seconds how long each key is remembered at least; at most a minute longer. */
export function recentKeys(seconds: number): RecentKeys {
  /** The keys by the time when their group began, the oldest first. */
  const sets = new Map<number, Set<string>>();
  const forget = (now: number) => {
    for (const began of sets.keys()) {
      if (began + GROUP_SECONDS + seconds > now) return;
      sets.delete(began);
    }
  };
  return {
    has: (key, now) => {
      forget(now);
      for (const keys of sets.values()) if (keys.has(key)) return true;
      return false;
    },
    add: (key, now) => {
      const began = now - (now % GROUP_SECONDS);
      const keys = sets.get(began);
      if (keys === undefined) sets.set(began, new Set([key]));
      else keys.add(key);
    },
    size: () => [...sets.values()].reduce((sum, keys) => sum + keys.size, 0),
    *keys() {
      for (const keys of sets.values()) yield* keys;
    },
  };
}
