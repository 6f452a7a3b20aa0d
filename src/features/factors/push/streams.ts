// The open event streams of one process, limited for each user and in all. A new stream ends the oldest one.

/** How many streams the devices of one user may have open, and how many may be open in all. */
const MAX_PER_USER = 10;
const MAX_TOTAL = 2_000;

interface OpenStream {
  /** Aborted when a newer stream took its place. */
  replaced: AbortSignal;
  /** Removes the stream from the count. To be called whenever it ends. */
  close(): void;
}

export interface Streams {
  /** Opens a stream of a user, and ends the oldest one when there are too many. */
  open(userId: string): OpenStream;
}

/** Returns the open streams of one process. */
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
      const count = [...all.values()].filter((one) => one === userId).length;
      if (count >= MAX_PER_USER) endOldest((one) => one === userId);
      else if (all.size >= MAX_TOTAL) endOldest(() => true);
      const stream = new AbortController();
      all.set(stream, userId);
      return { replaced: stream.signal, close: () => void all.delete(stream) };
    },
  };
}
