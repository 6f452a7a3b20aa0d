// Password hashes: argon2id (OWASP's m=19456 KiB, t=2, p=1), bcrypt verified for imported users, in a bounded
// queue, so that a burst of logins can exhaust neither memory nor every core.
import { availableParallelism } from 'node:os';
import { hash as argon2Hash, verify as argon2Verify } from '@node-rs/argon2';
import bcrypt from 'bcryptjs';
import { AuthError } from '../http/errors.ts';

const PARAMETERS = { algorithm: 2, memoryCost: 19456, timeCost: 2, parallelism: 1 } as const;
const CURRENT = '$argon2id$v=19$m=19456,t=2,p=1$';
const BCRYPT = /^\$2[aby]\$\d\d\$/;

/** A longer password is refused: it is no better, and hashing it costs the server (bytes of UTF-8). */
export const LONGEST_PASSWORD = 512;

/** What unknown users are verified against: a real hash of a password that nobody has. */
const NOBODY =
  '$argon2id$v=19$m=19456,t=2,p=1$bP9Gqs7uJmDt3TJJk/WcHQ$J3R7uEfKHofKuG5zVfRcVgWAmfXlvBztwH+e+7xJSoY';

export interface Verification {
  ok: boolean;
  /** The hash is not of today's parameters: hash the password again. */
  stale: boolean;
}

export interface Hasher {
  /** @throws AuthError 503 when too many wait already. */
  hash(password: string): Promise<string>;
  /** @throws AuthError 503 when too many wait already. */
  verify(hash: string, password: string): Promise<Verification>;
  /** Takes the time of a verification: for a user who does not exist. */
  verifyNothing(password: string): Promise<void>;
}

/**
 * The password hasher.
 * @param options how many hashes are computed at once (default: the cores), and how many may wait.
 */
export function createHasher(options: { concurrency?: number; maxQueued?: number } = {}): Hasher {
  const { concurrency = availableParallelism(), maxQueued = 512 } = options;
  const enqueue = boundedQueue(concurrency, maxQueued);
  const verify = (hash: string, password: string): Promise<boolean> => {
    const normal = normalizePassword(password);
    if (Buffer.byteLength(normal) > LONGEST_PASSWORD) return Promise.resolve(false);
    if (BCRYPT.test(hash)) return enqueue(() => bcrypt.compare(normal, hash));
    return enqueue(() => argon2Verify(hash, normal));
  };
  return {
    hash: (password) => enqueue(() => argon2Hash(normalizePassword(password), PARAMETERS)),
    verify: async (hash, password) => ({
      ok: await verify(hash, password),
      stale: !hash.startsWith(CURRENT),
    }),
    verifyNothing: async (password) => {
      await verify(NOBODY, password);
    },
  };
}

/** The same password typed on two keyboards is the same password (RFC 8265 §4.2): judged and hashed in this form. */
export function normalizePassword(password: string): string {
  return password.normalize('NFC');
}

function boundedQueue(concurrency: number, maxQueued: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= concurrency) {
      if (waiting.length >= maxQueued) {
        throw new AuthError(503, 'temporarily_unavailable', 'The server is busy. Try again in a moment.');
      }
      // The one that finishes hands its place on, so that `running` stays as it is.
      await new Promise<void>((go) => waiting.push(go));
    } else {
      running++;
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
