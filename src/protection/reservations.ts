// Tries that are being judged just now: guesses that come at once must not be judged all before the first of
// them is counted.

/** A place for one try. */
export interface Reservations {
  /**
   * Takes a place of a key; waits for one while `free` says there is none for another.
   * @param free how many more may be judged now, given how many are; asked again whenever one ends. What it
   *   throws is thrown on.
   */
  take(key: string, free: (judged: number) => Promise<boolean>): Promise<void>;
  /** Gives a place back. */
  release(key: string): void;
}

/** A try that never ends, such as one whose request failed half-way, holds its place no longer than this. */
const LONGEST_TRY = 30_000;

/** Places in this process. */
export function createReservations(): Reservations {
  interface Entry {
    judged: NodeJS.Timeout[];
    waiting: (() => void)[];
  }
  const entries = new Map<string, Entry>();
  const wake = (key: string, entry: Entry) => {
    for (const next of entry.waiting.splice(0)) next();
    if (entry.judged.length === 0 && entry.waiting.length === 0) entries.delete(key);
  };
  return {
    take: async (key, free) => {
      for (;;) {
        const entry = entries.get(key) ?? { judged: [], waiting: [] };
        entries.set(key, entry);
        const held = entry.judged.length;
        let isFree: boolean;
        try {
          isFree = await free(held);
        } catch (thrown) {
          if (entry.judged.length === 0 && entry.waiting.length === 0) entries.delete(key);
          throw thrown;
        }
        // Somebody may have come while it was looked up; then it is looked up again.
        if (isFree && entry.judged.length === held && entries.get(key) === entry) {
          const timer = setTimeout(() => {
            entry.judged = entry.judged.filter((one) => one !== timer);
            wake(key, entry);
          }, LONGEST_TRY);
          timer.unref();
          entry.judged.push(timer);
          return;
        }
        if (!isFree) await new Promise<void>((resolve) => entry.waiting.push(resolve));
      }
    },
    release: (key) => {
      const entry = entries.get(key);
      if (entry === undefined) return;
      clearTimeout(entry.judged.shift());
      wake(key, entry);
    },
  };
}
