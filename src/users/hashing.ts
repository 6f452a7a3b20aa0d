// Password hashes: argon2id with OWASP's parameters (m=19456 KiB, t=2, p=1). Hashes of other systems are verified for imported
// users. A bounded queue keeps a burst of logins from exhausting memory or all cores; networks take turns in it.
import { availableParallelism } from 'node:os';
import { hash as argon2Hash, verify as argon2Verify } from '@node-rs/argon2';
import bcrypt from 'bcryptjs';
import { serverBusy } from '../http/errors.ts';
import { MAX_PASSWORD_LENGTH, normalizePassword } from '../records/database-options.ts';
import { createFairWork } from '../runtime/fair-queue.ts';
import type { Measures } from '../runtime/measures.ts';
import { isImported, verifyImported } from './imported-hashes/imported-hashes.ts';

/** The cost of one hash: memory in KiB, and passes over it. */
export interface HashCost {
  memoryCost: number;
  timeCost: number;
}

const RECOMMENDED: HashCost = { memoryCost: 19456, timeCost: 2 };
const BCRYPT = /^\$2[aby]\$\d\d\$/;

interface Verification {
  ok: boolean;
  /** Whether the hash has other parameters than new ones, so that the password should be hashed again. */
  stale: boolean;
}

export interface Hasher {
  /** @throws AuthError 503 if the queue is full, or others need the place meanwhile. */
  hash(password: string): Promise<string>;
  /** @throws AuthError 503 as {@link hash}. */
  verify(hash: string, password: string): Promise<Verification>;
  /** Takes as long as a verification, for a user who does not exist. */
  verifyNothing(password: string): Promise<void>;
  waiting?(): number;
  /** Reports the waiting and computing times of all later hashes. */
  measure?(measures: Pick<Measures, 'hashed'>): void;
}

/**
 * @param options how many hashes are computed at once (default: the number of cores), how many may wait (as many of who
 *   has logged in before, and as many of others), and the cost of one (default: OWASP's recommendation; only tests use
 *   less).
 */
export function createHasher(
  options: { concurrency?: number; maxQueued?: number; cost?: HashCost } = {},
): Hasher {
  const { concurrency = availableParallelism(), maxQueued = 512, cost = RECOMMENDED } = options;
  const parameters = { ...cost, algorithm: 2, parallelism: 1 } as const;
  const current = `$argon2id$v=19$m=${cost.memoryCost},t=${cost.timeCost},p=1$`;
  // For unknown users, at the same cost as for others: salt and hash are all zero bytes, which no password has.
  const dummyHash = `${current}${'A'.repeat(22)}$${'A'.repeat(43)}`;
  const { enqueue, waiting, measure } = boundedQueue(concurrency, maxQueued);
  const verify = (hash: string, password: string): Promise<boolean> => {
    const normal = normalizePassword(password);
    if (Buffer.byteLength(normal) > MAX_PASSWORD_LENGTH) return Promise.resolve(false);
    // Other systems hash what the keyboard sent, as macOS does decomposed letters (NFD).
    const isAsTyped = password !== normal && Buffer.byteLength(password) <= MAX_PASSWORD_LENGTH;
    const isOwn = hash.startsWith('$argon2id$');
    const verifyOne = async (typed: string) => {
      if (isOwn) return argon2Verify(hash, typed);
      // A cheap hash also takes the time of one of ours: a faster response would reveal that the user exists.
      const [ok] = await Promise.all([verifyForeign(hash, typed), argon2Verify(dummyHash, typed)]);
      return ok;
    };
    return enqueue(async () => {
      const ok = await verifyOne(normal);
      // Also for a hash of ours, of which it is never the password: the time must not tell the kinds of hashes apart.
      return isAsTyped && !ok ? verifyOne(password) : ok;
    });
  };
  return {
    hash: (password) => enqueue(() => argon2Hash(normalizePassword(password), parameters)),
    verify: async (hash, password) => ({
      ok: await verify(hash, password),
      stale: !hash.startsWith(current),
    }),
    verifyNothing: async (password) => {
      await verify(dummyHash, password);
    },
    waiting,
    measure,
  };
}

async function verifyForeign(hash: string, password: string): Promise<boolean> {
  if (BCRYPT.test(hash)) return bcrypt.compare(password, hash);
  return isImported(hash) && verifyImported(hash, password);
}

function boundedQueue(concurrency: number, maxWaiting: number) {
  const hashes = createFairWork({
    concurrency,
    maxWaiting,
    refusal: () => serverBusy(),
  });
  let measures: Pick<Measures, 'hashed'> | undefined;
  const measured = async <T>(work: () => Promise<T>, { hashed }: Pick<Measures, 'hashed'>): Promise<T> => {
    const queuedAt = performance.now();
    let startedAt = queuedAt;
    try {
      return await hashes.run(() => {
        startedAt = performance.now();
        return work();
      });
    } finally {
      hashed((startedAt - queuedAt) / 1000, (performance.now() - startedAt) / 1000);
    }
  };
  return {
    enqueue: <T>(work: () => Promise<T>): Promise<T> =>
      measures === undefined ? hashes.run(work) : measured(work, measures),
    waiting: hashes.waiting,
    measure: (to: Pick<Measures, 'hashed'>) => {
      measures = to;
    },
  };
}
