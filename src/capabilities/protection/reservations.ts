// Attempts that are being verified. Guesses that are sent at once must not all be verified before the first failure
// is counted.

/** Places of attempts under keys. */
export interface Reservations {
  /**
   * Takes a place under each key, all or none. Waits while a key has no place left.
   * @param readAllowed returns how many attempts each key allows, including those being verified. It is called again when
   *   one has ended. Its errors are passed on.
   * @returns a function that gives the places back.
   */
  take(keys: readonly string[], readAllowed: () => Promise<readonly number[]>): Promise<() => void>;
}

/** How long an attempt keeps its place if it is never released, milliseconds. */
export const MAX_ATTEMPT_MS = 30_000;

/** The attempts of a key that are being verified, and those that wait. */
interface Entry {
  running: NodeJS.Timeout[];
  waiting: (() => void)[];
  /** How many attempts have ended. */
  ended: number;
}

/** Returns the entries by key, and the functions that change them. */
function createEntries() {
  const entries = new Map<string, Entry>();
  const drop = (key: string, entry: Entry) => {
    const isCurrent = entries.get(key) === entry;
    if (isCurrent && entry.running.length === 0 && entry.waiting.length === 0) entries.delete(key);
  };
  const ended = (key: string, entry: Entry) => {
    entry.ended++;
    for (const next of entry.waiting.splice(0)) next();
    drop(key, entry);
  };
  const hold = (key: string, entry: Entry) => {
    const timer = setTimeout(() => {
      entry.running = entry.running.filter((one) => one !== timer);
      ended(key, entry);
    }, MAX_ATTEMPT_MS);
    timer.unref();
    entry.running.push(timer);
  };
  /** Returns the entries of keys, each with how many of its attempts have ended so far. */
  const open = (keys: readonly string[]) =>
    keys.map((key) => {
      const entry = entries.get(key) ?? { running: [], waiting: [], ended: 0 };
      entries.set(key, entry);
      return { key, entry, ended: entry.ended };
    });
  return { entries, open, drop, ended, hold };
}

/** Returns reservations for the only process of a store. */
export function localReservations(): Reservations {
  const { entries, open, drop, ended, hold } = createEntries();
  const release = (key: string): void => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    clearTimeout(entry.running.shift());
    ended(key, entry);
  };
  return {
    take: async (keys, readAllowed) => {
      for (;;) {
        const all = open(keys);
        let allowed: readonly number[];
        try {
          allowed = await readAllowed();
        } catch (thrown) {
          for (const { key, entry } of all) drop(key, entry);
          throw thrown;
        }
        // An attempt that ended in the meantime may have failed, so the levels are read again. New attempts are in
        // `judged`.
        if (all.some(({ key, entry, ended: before }) => entry.ended !== before || entries.get(key) !== entry))
          continue;
        const full = all.find(({ entry }, index) => entry.running.length > (allowed[index] ?? 0) - 1);
        if (full === undefined) {
          for (const { key, entry } of all) hold(key, entry);
          return () => {
            for (const key of keys) release(key);
          };
        }
        // Nothing is held while waiting, because two attempts that wait for each other would deadlock.
        const freed = new Promise<void>((resolve) => full.entry.waiting.push(resolve));
        for (const { key, entry } of all) drop(key, entry);
        await freed;
      }
    },
  };
}
