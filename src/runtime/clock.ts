// Time, passed in so that tests control it.

/** Now, in epoch milliseconds. */
export type Clock = () => number;

/** The machine's clock; read through `Date` at each call, so that a test may move it. */
export const systemClock: Clock = () => Date.now();

/** The same, which no test moves: what it is compared with was moved by as much as they differ. */
export const unmovedClock: Clock = Date.now;

/**
 * A clock that never goes back, so that what has expired stays expired when the machine's clock is set back. It then
 * runs ahead of the wall clock until that has caught up or the process ends. Use it for durations; dates of others (JWT,
 * SAML message, one-time password) are compared with the wall clock.
 * @param wall epoch milliseconds.
 * @param elapsed monotonic milliseconds.
 */
export function steadyClock(wall: Clock, elapsed: () => number = () => performance.now()): Clock {
  let ahead = Number.NEGATIVE_INFINITY;
  return () => {
    const passed = elapsed();
    ahead = Math.max(ahead, wall() - passed);
    return Math.floor(ahead + passed);
  };
}

/**
 * How far the wall clock may be set back, seconds, without allowing a replay: used message ids are remembered so much
 * longer than they are valid.
 */
export const SET_BACK = 3600;

/** Epoch seconds, rounded down, of a clock. */
export function epochSeconds(clock: Clock): number {
  return Math.floor(clock() / 1000);
}
