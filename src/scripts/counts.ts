// How many there are of each key.

export interface Counts {
  of(key: string): number;
  isEmpty(): boolean;
  /** @param more how many come; fewer than none: how many go. */
  add(key: string, more: number): void;
}

/** None yet. */
export function countByKey(): Counts {
  const counts = new Map<string, number>();
  const of = (key: string) => counts.get(key) ?? 0;
  return {
    of,
    isEmpty: () => counts.size === 0,
    add: (key, more) => {
      const now = of(key) + more;
      if (now > 0) counts.set(key, now);
      else counts.delete(key);
    },
  };
}
