// Randomness, passed in so that tests control it.
import { randomBytes } from 'node:crypto';

/** Returns that many cryptographically secure bytes. */
export type Random = (bytes: number) => Buffer;

/** The operating system's random source. */
export const systemRandom: Random = (bytes) => randomBytes(bytes);
