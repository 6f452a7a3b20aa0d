// Expired records are invisible at once; this takes them out of memory and off the disk, a slice at a time so that
// no backlog holds up the event loop.
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';

const everyMilliseconds = 1000;

/** How far a clock may leap ahead at once and be believed, milliseconds: corrections of NTP are smaller. */
const LEAP = 60_000;
/** How long it must then stay there, and how long the clock of a process that begins is watched, milliseconds. */
const WATCHED = 3_600_000;

/** What tells by when records have expired that are deleted. */
interface DeletionClocks {
  /** Epoch milliseconds; may be wrong, and may be set right. */
  wall: Clock;
  /** Monotonic milliseconds. */
  elapsed?: (() => number) | undefined;
}

/**
 * The time by which records may be deleted. What a clock that is ahead hides is there again when it is put right, but what was
 * deleted is not: so a leap ahead counts only when the clock has stayed there for an hour, and so does the time that the process
 * began at, of which nobody knows whether it is right.
 * @returns epoch milliseconds; 0 as long as none is known.
 */
export function deletionClock({ wall, elapsed = () => performance.now() }: DeletionClocks): Clock {
  let believed = Number.NEGATIVE_INFINITY;
  let leapt: { to: number; at: number } | undefined;
  const look = () => {
    const passed = elapsed();
    const ahead = wall() - passed;
    if (ahead - believed > LEAP) {
      if (leapt === undefined || Math.abs(ahead - leapt.to) > LEAP) leapt = { to: ahead, at: passed };
      if (passed - leapt.at < WATCHED) return Math.max(0, believed + passed);
    }
    believed = ahead;
    leapt = undefined;
    return believed + passed;
  };
  look();
  return look;
}

/**
 * Purges once a second, without keeping the process alive, until it is stopped.
 * @param purges each deletes some records that have expired, and says whether there may be more
 * @returns what stops it, and waits for what is under way.
 */
export function purgeRegularly(
  purges: (() => Promise<boolean>)[],
  log: Pick<Logger, 'error'> | undefined,
): () => Promise<void> {
  let running: Promise<void> | undefined;
  let stopped = false;
  const all = async () => {
    try {
      for (const purge of purges) {
        while (!stopped && (await purge())) await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (err) {
      log?.error({ err }, 'expired records could not be purged');
    }
    running = undefined;
  };
  const timer = setInterval(() => {
    running ??= all();
  }, everyMilliseconds);
  timer.unref();
  return async () => {
    stopped = true;
    clearInterval(timer);
    await running;
  };
}
