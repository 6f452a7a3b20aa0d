// Maps that keep only the latest entries.

/** Adds an entry as the last one, and drops the first one if there are more than `most`. */
export function keepLatest<V>(kept: Map<string, V>, most: number, key: string, value: V): void {
  kept.delete(key);
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > most && oldest !== undefined) kept.delete(oldest);
}
