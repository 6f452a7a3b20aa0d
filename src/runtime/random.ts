// Randomness, passed in so that a test may decide it.
import { randomBytes } from 'node:crypto';

/** That many bytes from a cryptographically secure source. */
export type Random = (bytes: number) => Buffer;

/** The operating system's random source. */
export const systemRandom: Random = (bytes) => randomBytes(bytes);
