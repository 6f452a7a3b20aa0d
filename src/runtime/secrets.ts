// Secrets that are kept as hashes: codes, tickets, recovery codes.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** SHA-256 of a long secret; HMAC under a salt of its own for one that is short enough to be guessed from a hash. */
export function hashSecret(secret: string, salt?: string): string {
  const hash = salt === undefined ? createHash('sha256') : createHmac('sha256', salt);
  return hash.update(secret).digest('base64url');
}

/** Compares in constant time. */
export function isSameSecret(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}
