// What would otherwise be global: time and randomness, passed in so that tests decide both.

/** Now, in epoch milliseconds. */
export type Clock = () => number;

/** The machine's clock; read through `Date` at each call, so that a test may move it. */
export const systemClock: Clock = () => Date.now();

/**
 * A clock that never goes back: what is over by it stays over when somebody, or a time server, sets the machine's
 * clock back. From then on it keeps its pace by a stopwatch, ahead of the wall clock, until that has caught up or
 * the process ends. It is for how long something lasts; what others have dated (a JWT, a SAML message, a one-time
 * password) is compared with the wall clock.
 * @param wall epoch milliseconds.
 * @param elapsed milliseconds since any moment; never goes back and takes no part in corrections.
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
 * How far a clock may be set back, seconds, without something counting twice that counts once by a date of its
 * sender's: what was used is remembered for so much longer than it is good.
 */
export const SET_BACK = 3600;

/** Epoch seconds, rounded down, of a clock. */
export function epochSeconds(clock: Clock): number {
  return Math.floor(clock() / 1000);
}
