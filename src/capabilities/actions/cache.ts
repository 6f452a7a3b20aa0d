// `api.cache`: texts that actions of one trigger keep for later runs, in this process, for a day at most.
import type { Clock } from '../../runtime/clock.ts';
import type { Command } from './commands.ts';

interface Entry {
  value: string;
  /** Epoch milliseconds. */
  expires_at: number;
}

export interface ActionCache {
  /** Returns the entries of a trigger, by key. */
  entries(trigger: string): Record<string, Entry>;
  /** Applies `cache.set` and `cache.delete`. @returns false for another command. */
  apply(trigger: string, command: Command): boolean;
}

/** Limits of a trigger's cache: entries, characters of a key and of a value, age in milliseconds. */
const LIMITS = { entries: 20, key: 64, value: 4096, age: 24 * 3600 * 1000 };

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
    entries: (trigger) => Object.fromEntries(entriesOf(trigger)),
    apply: (trigger, { method, args }) => {
      const [key, value, until] = args;
      if (!method.startsWith('cache.') || typeof key !== 'string') return false;
      const entries = entriesOf(trigger);
      entries.delete(key);
      if (method === 'cache.delete') return true;
      if (typeof value !== 'string' || typeof until !== 'number') return false;
      if (key.length > LIMITS.key || value.length > LIMITS.value) return true;
      const [oldest] = entries.keys();
      if (entries.size >= LIMITS.entries && oldest !== undefined) entries.delete(oldest);
      entries.set(key, { value, expires_at: Math.min(until, clock() + LIMITS.age) });
      return true;
    },
  };
}
