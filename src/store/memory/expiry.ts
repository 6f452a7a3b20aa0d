// When records expire, in buckets of one minute: looking for expired records examines only the minutes that have begun.
// Moving a record's expiry, as each request of a session does, leaves no stale entry behind.

export interface Expiry {
  /** Adds a record that expires at a time in epoch seconds. */
  add(id: string, expiresAt: number): void;
  /** Removes a record added with this time. */
  remove(id: string, expiresAt: number): void;
  /** Returns at most `limit` ids of records that have expired at a time in epoch milliseconds. */
  due(now: number, limit: number): string[];
}

const bucketSeconds = 60;
const bucketOf = (expiresAt: number) => Math.floor(expiresAt / bucketSeconds);

/** Returns an empty schedule. */
export function createExpiry(): Expiry {
  const buckets = new Map<number, Map<string, number>>();
  /** The earliest bucket; undefined when it must be determined anew. */
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
