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

/** The tries of one key that are being judged, and what wakes those that wait for one of them to end. */
interface Entry {
  judged: NodeJS.Timeout[];
  waiting: (() => void)[];
  /** How often a try began or ended. */
  changes: number;
}

/** Places in this process. */
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
        // Somebody may have come or gone while it was looked up; then it is looked up again.
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
