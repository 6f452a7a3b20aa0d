// Maps that keep only the latest entries.

/** Adds an entry as the last one, and drops the first one if there are more than `most`. */
export function keepLatest<V>(entries: Map<string, V>, max: number, key: string, value: V): void {
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > max && oldest !== undefined) entries.delete(oldest);
}
