// Counts by key.

export interface Counts {
  of(key: string): number;
  isEmpty(): boolean;
  /** @param more what to add; negative to subtract. */
  add(key: string, more: number): void;
}

/** Makes an empty counter. */
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
