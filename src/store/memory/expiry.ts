// When records expire, in buckets of a minute: finding what is due looks only at the minutes that have
// begun, and moving a record's expiry (a session does so at each request) leaves nothing behind.

export interface Expiry {
  /** Notes that a record expires, at epoch seconds. */
  add(id: string, expiresAt: number): void;
  /** Undoes `add`. */
  remove(id: string, expiresAt: number): void;
  /** At most `limit` ids that have expired at a time in epoch milliseconds. */
  due(now: number, limit: number): string[];
}

const bucketSeconds = 60;
const bucketOf = (expiresAt: number) => Math.floor(expiresAt / bucketSeconds);

/** An empty expiry schedule. */
export function createExpiry(): Expiry {
  const buckets = new Map<number, Map<string, number>>();
  /** The first bucket; undefined when it has to be looked for. */
  let earliest: number | undefined;
  const first = () => {
    earliest ??= [...buckets.keys()].reduce((least, bucket) => Math.min(least, bucket), Infinity);
    return earliest;
  };

  return {
    add(id, expiresAt) {
      const bucket = bucketOf(expiresAt);
      const entries = buckets.get(bucket);
      if (entries === undefined) buckets.set(bucket, new Map([[id, expiresAt]]));
      else entries.set(id, expiresAt);
      if (earliest !== undefined && bucket < earliest) earliest = bucket;
    },
    remove(id, expiresAt) {
      const bucket = bucketOf(expiresAt);
      const entries = buckets.get(bucket);
      entries?.delete(id);
      if (entries?.size !== 0) return;
      buckets.delete(bucket);
      if (bucket === earliest) earliest = undefined;
    },
    due(now, limit) {
      const current = bucketOf(now / 1000);
      if (first() > current) return [];
      const found: string[] = [];
      for (const [bucket, entries] of buckets) {
        if (bucket > current) continue;
        for (const [id, expiresAt] of entries) {
          if (expiresAt * 1000 > now) continue;
          found.push(id);
          if (found.length === limit) return found;
        }
      }
      return found;
    },
  };
}
