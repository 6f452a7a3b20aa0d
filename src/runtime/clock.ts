// Time, passed in so that tests control it.

/** Now, in epoch milliseconds. */
export type Clock = () => number;

/** The machine's clock. It calls `Date.now` each time, so that a test may replace it. */
export const systemClock: Clock = () => Date.now();

/**
 * The machine's clock, which no test replaces. Comparing with it tells by how much a test has moved the other one.
 */
export const realClock: Clock = Date.now;

// docs/understand/decisions/operating.md#setting-the-clock-back-does-not-make-expired-things-valid-again
/**
 * Makes a clock that never goes back, so that what has expired stays expired when the machine's clock is set back.
 * It then runs ahead of the wall clock until that has caught up or the process ends. Use it for durations; dates
 * that others set (JWT, SAML message, one-time password) are compared with the wall clock.
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
 * How far the wall clock may be set back without allowing a replay, seconds: ids of used messages are remembered so
 * much longer than the messages are valid.
 */
export const SET_BACK = 3600;

/** Returns the epoch seconds of a clock, rounded down. */
export function epochSeconds(clock: Clock): number {
  return Math.floor(clock() / 1000);
}
