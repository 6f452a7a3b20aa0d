// Attempts being verified: guesses sent at once must not all be verified before the first failure is counted.

/** Places for attempts under keys. */
export interface Reservations {
  /**
   * Takes a place under each of some keys, all or none; waits while one of them has none.
   * @param look how many more attempts each key allows, those being verified among them; asked again when one has
   *   ended meanwhile. What it throws is passed on.
   * @returns what gives the places back.
   */
  take(keys: readonly string[], look: () => Promise<readonly number[]>): Promise<() => void>;
}

/** Longest time that an attempt holds its place, in case it never ends, milliseconds. */
export const LONGEST_TRY = 30_000;

/** The attempts of a key being verified, and those that wait. */
interface Entry {
  judged: NodeJS.Timeout[];
  waiting: (() => void)[];
  /** How many attempts have ended. */
  ended: number;
}

/** The entries by key: held, ended and dropped. */
function createEntries() {
  const entries = new Map<string, Entry>();
  const drop = (key: string, entry: Entry) => {
    const isCurrent = entries.get(key) === entry;
    if (isCurrent && entry.judged.length === 0 && entry.waiting.length === 0) entries.delete(key);
  };
  const ended = (key: string, entry: Entry) => {
    entry.ended++;
    for (const next of entry.waiting.splice(0)) next();
    drop(key, entry);
  };
  const hold = (key: string, entry: Entry) => {
    const timer = setTimeout(() => {
      entry.judged = entry.judged.filter((one) => one !== timer);
      ended(key, entry);
    }, LONGEST_TRY);
    timer.unref();
    entry.judged.push(timer);
  };
  /** The entries of keys, each with how many of its attempts have ended so far. */
  const open = (keys: readonly string[]) =>
    keys.map((key) => {
      const entry = entries.get(key) ?? { judged: [], waiting: [], ended: 0 };
      entries.set(key, entry);
      return { key, entry, ended: entry.ended };
    });
  return { entries, open, drop, ended, hold };
}

/** Reservations of a process that alone has its store. */
export function localReservations(): Reservations {
  const { entries, open, drop, ended, hold } = createEntries();
  const release = (key: string): void => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    clearTimeout(entry.judged.shift());
    ended(key, entry);
  };
  return {
    take: async (keys, look) => {
      for (;;) {
        const all = open(keys);
        let allowed: readonly number[];
        try {
          allowed = await look();
        } catch (thrown) {
          for (const { key, entry } of all) drop(key, entry);
          throw thrown;
        }
        // Looked again when one has ended meanwhile: it may have been wrong. Those that began count by themselves.
        if (all.some(({ key, entry, ended: before }) => entry.ended !== before || entries.get(key) !== entry))
          continue;
        const full = all.find(({ entry }, index) => entry.judged.length > (allowed[index] ?? 0) - 1);
        if (full === undefined) {
          for (const { key, entry } of all) hold(key, entry);
          return () => {
            for (const key of keys) release(key);
          };
        }
        // Nothing is held while waiting: two that wait for each other would both wait for ever.
        const freed = new Promise<void>((resolve) => full.entry.waiting.push(resolve));
        for (const { key, entry } of all) drop(key, entry);
        await freed;
      }
    },
  };
}
