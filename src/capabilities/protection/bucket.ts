// The arithmetic of token buckets.
import type { Bucket } from '../../records/limits.ts';

/** A bucket's level at a time. */
export interface Level {
  tokens: number;
  /** Epoch milliseconds when `tokens` was computed. */
  at: number;
}

/**
 * Takes a token from a bucket (1), gives one back (-1), or only refills it (0).
 * @param current undefined for a full bucket.
 * @returns the new level, and the tokens left; negative when there was none, and none was taken.
 */
export function updateLevel(
  { capacity, perMinute }: Bucket,
  current: Level | undefined,
  { now, taken }: { now: number; taken: 1 | 0 | -1 },
): { level: Level; left: number } {
  const since = current === undefined ? 0 : (Math.max(0, now - current.at) * perMinute) / 60_000;
  const tokens = Math.min(capacity, (current?.tokens ?? capacity) + since);
  const left = Math.min(capacity, tokens - taken);
  return { level: { tokens: left >= 0 ? left : tokens, at: now }, left };
}

/** Returns the seconds until a bucket refills from `from` to `to`. */
export function secondsTo({ perMinute }: Bucket, from: number, to: number): number {
  return (Math.max(0, to - from) / perMinute) * 60;
}

/** Returns when a bucket is full again, epoch seconds. Its counter can then be deleted. */
export function fullAt(bucket: Bucket, { tokens, at }: Level): number {
  return Math.ceil(at / 1000 + secondsTo(bucket, tokens, bucket.capacity)) + 1;
}
