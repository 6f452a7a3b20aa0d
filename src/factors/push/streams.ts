// The event streams that are open: so many of a user and so many in all, whoever opens them. The newest live.

/** How many streams the devices of one user may have open, and how many there are in all. */
const MOST_OF_USER = 10;
const MOST_IN_ALL = 2_000;

/** An open stream. */
interface OpenStream {
  /** Aborted when a newer one took its place. */
  replaced: AbortSignal;
  /** Makes room again; to be called when it ends, for whatever reason. */
  close(): void;
}

export interface Streams {
  /** Opens a stream of a user's; where there are too many, the oldest ends. */
  open(userId: string): OpenStream;
}

/** The streams of one process. */
export function createStreams(): Streams {
  // In the order in which they were opened.
  const all = new Map<AbortController, string>();
  const endOldest = (of: (userId: string) => boolean) => {
    for (const [stream, userId] of all) {
      if (!of(userId)) continue;
      all.delete(stream);
      return stream.abort();
    }
  };
  return {
    open: (userId) => {
      const own = [...all.values()].filter((one) => one === userId).length;
      if (own >= MOST_OF_USER) endOldest((one) => one === userId);
      else if (all.size >= MOST_IN_ALL) endOldest(() => true);
      const stream = new AbortController();
      all.set(stream, userId);
      return { replaced: stream.signal, close: () => void all.delete(stream) };
    },
  };
}
