// Maps that keep what was put there last.

/** Puts an entry last, and drops the first ones of the map beyond so many. */
export function keepLatest<V>(kept: Map<string, V>, most: number, key: string, value: V): void {
  kept.delete(key);
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > most && oldest !== undefined) kept.delete(oldest);
}
