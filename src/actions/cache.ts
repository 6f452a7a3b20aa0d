// `api.cache`: texts that actions of one trigger keep for later runs, in this process, for a day at most.
import type { Clock } from '../runtime/clock.ts';
import type { Command } from './commands.ts';

interface Entry {
  value: string;
  /** Epoch milliseconds. */
  expires_at: number;
}

export interface ActionCache {
  /** Returns the entries of a trigger, by key. */
  of(trigger: string): Record<string, Entry>;
  /** Applies `cache.set` and `cache.delete`. @returns false for another command. */
  take(trigger: string, command: Command): boolean;
}

/** Limits of a trigger's cache: entries, characters of a key and of a value, age in milliseconds. */
const MOST = { entries: 20, key: 64, value: 4096, age: 24 * 3600 * 1000 };

/** Makes the cache. @param clock returns epoch milliseconds. */
export function createActionCache(clock: Clock): ActionCache {
  const triggers = new Map<string, Map<string, Entry>>();
  const entriesOf = (trigger: string) => {
    const entries = triggers.get(trigger) ?? new Map<string, Entry>();
    triggers.set(trigger, entries);
    for (const [key, { expires_at }] of entries) if (expires_at <= clock()) entries.delete(key);
    return entries;
  };
  return {
    of: (trigger) => Object.fromEntries(entriesOf(trigger)),
    take: (trigger, { method, args }) => {
      const [key, value, until] = args;
      if (!method.startsWith('cache.') || typeof key !== 'string') return false;
      const entries = entriesOf(trigger);
      entries.delete(key);
      if (method === 'cache.delete') return true;
      if (typeof value !== 'string' || typeof until !== 'number') return false;
      if (key.length > MOST.key || value.length > MOST.value) return true;
      const [oldest] = entries.keys();
      if (entries.size >= MOST.entries && oldest !== undefined) entries.delete(oldest);
      entries.set(key, { value, expires_at: Math.min(until, clock() + MOST.age) });
      return true;
    },
  };
}
