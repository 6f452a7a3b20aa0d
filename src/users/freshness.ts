// How recent a login has to be for a change that outlives it.
import { type Clock, epochSeconds } from '../runtime/clock.ts';

/** How old a login may be for a change of how a user logs in, seconds. */
export const FRESH_SECONDS = 600;

/** How far the clocks of two processes may differ, seconds. */
const SKEW = 60;

/** Returns whether a login is recent. @param authTime epoch seconds */
export function isFresh(authTime: number, clock: Clock): boolean {
  const age = epochSeconds(clock) - authTime;
  // A time in the future was not measured with this clock.
  return age <= FRESH_SECONDS && age >= -SKEW;
}
