// What would otherwise be global: time and randomness, passed in so that tests decide both.
import { randomBytes } from 'node:crypto';

/** Now, in epoch milliseconds. */
export type Clock = () => number;

/** That many bytes from a cryptographically secure source. */
export type Random = (bytes: number) => Buffer;

/** The machine's clock; read through `Date` at each call, so that a test may move it. */
export const systemClock: Clock = () => Date.now();

/** The operating system's random source. */
export const systemRandom: Random = (bytes) => randomBytes(bytes);

/** Epoch seconds, rounded down, of a clock. */
export function epochSeconds(clock: Clock): number {
  return Math.floor(clock() / 1000);
}
