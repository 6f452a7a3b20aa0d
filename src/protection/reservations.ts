// Attempts being verified: guesses sent at once must not all be verified before the first failure is counted.

/** Places for attempts under a key. */
interface Reservations {
  /**
   * Takes a place under a key; waits while there is none.
   * @param free whether another attempt may be verified while `judged` are; asked again whenever one ends. What it
   *   throws is passed on.
   */
  take(key: string, free: (judged: number) => Promise<boolean>): Promise<void>;
  /** Gives a place back. */
  release(key: string): void;
}

/** Longest time that an attempt holds its place, in case it never ends, milliseconds. */
const LONGEST_TRY = 30_000;

/** The attempts of a key being verified, and those that wait. */
interface Entry {
  judged: NodeJS.Timeout[];
  waiting: (() => void)[];
  /** Incremented when an attempt begins or ends. */
  changes: number;
}

/** Reservations of this process. */
export function createReservations(): Reservations {
  const entries = new Map<string, Entry>();
  const drop = (key: string, entry: Entry) => {
    const isCurrent = entries.get(key) === entry;
    if (isCurrent && entry.judged.length === 0 && entry.waiting.length === 0) entries.delete(key);
  };
  const ended = (key: string, entry: Entry) => {
    entry.changes++;
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
    entry.changes++;
  };
  return {
    take: async (key, free) => {
      for (;;) {
        const entry = entries.get(key) ?? { judged: [], waiting: [], changes: 0 };
        entries.set(key, entry);
        const { changes } = entry;
        let isFree: boolean;
        try {
          isFree = await free(entry.judged.length);
        } catch (thrown) {
          drop(key, entry);
          throw thrown;
        }
        // Looked up again when an attempt began or ended meanwhile.
        if (entry.changes !== changes || entries.get(key) !== entry) continue;
        if (isFree) return hold(key, entry);
        await new Promise<void>((resolve) => entry.waiting.push(resolve));
      }
    },
    release: (key) => {
      const entry = entries.get(key);
      if (entry === undefined) return;
      clearTimeout(entry.judged.shift());
      ended(key, entry);
    },
  };
}
