// Hashes of secrets, and comparison in constant time.
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Returns the SHA-256 of a text (in UTF-8) or of bytes, in base64url: 43 characters. */
export function sha256(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url');
}

/** Returns the SHA-256 of a text (in UTF-8), in 64 hexadecimal digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}

/**
 * Returns the SHA-256 of a long secret, or an HMAC with a salt for one that is short enough to be guessed from its
 * hash.
 */
export function hashSecret(secret: string, salt?: string): string {
  return salt === undefined ? sha256(secret) : createHmac('sha256', salt).update(secret).digest('base64url');
}

/** Compares two secrets in constant time. */
export function isSameSecret(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}

// Randomness, passed in so that tests control it.

/** Returns that many cryptographically secure bytes. */
export type Random = (bytes: number) => Buffer;

/** The operating system's random source. */
export const systemRandom: Random = (bytes) => randomBytes(bytes);
