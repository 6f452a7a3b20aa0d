// Failed proofs of who somebody is, whatever way in (password grant, hosted page, passwordless, MFA):
// counted per account and address, and per address across accounts (wire-details 12.3).
import { createHash } from 'node:crypto';
import { AuthError } from '../http/errors.ts';
import type { Clock } from '../http/runtime.ts';
import type { Store } from '../store/contract.ts';
import type { Directory } from '../tenant/directory.ts';
import type { AttackProtection } from '../tenant/schema-protection.ts';
import type { User } from '../users/users.ts';
import { addressKey, isListed } from './addresses.ts';
import { countFailure, failuresNow, type Tally } from './failures.ts';
import { createReservations } from './reservations.ts';
import { protectionSettings } from './settings.ts';

/** Whose proof is tried, and from where. */
export interface Attempt {
  /** The connection's name. */
  connection: string;
  /** E-mail address, phone number or username, as typed. */
  identifier: string;
  /** The user whom that names, if there is one: for {@link AttemptsDependencies.onLocked}, counted is what was typed. */
  userId?: string | undefined;
  ip: string;
  /**
   * What is tried after the first proof, such as `mfa`: counted by itself, or whoever has the password could
   * have wrong codes forgiven by logging in again.
   */
  step?: string;
  /** The connection's `brute_force_protection`; true where it says nothing. */
  locks?: boolean;
}

export interface Attempts {
  /**
   * Asked before a proof is looked at; every try that is admitted must end in `failed`, `succeeded` or
   * `abandoned`. Waits while so many are being looked at that this one might be one too many.
   * @throws AuthError 429 `too_many_attempts` when the account is locked for this address, or the address is
   *   throttled; whether there is such an account makes no difference.
   */
  admit(attempt: Attempt): Promise<void>;
  /** The proof was wrong. */
  failed(attempt: Attempt): Promise<void>;
  /** The proof was right: the count of the account from this address starts anew. */
  succeeded(attempt: Attempt): Promise<void>;
  /** The try came to no judgement, such as when the server was too busy for it. */
  abandoned(attempt: Attempt): void;
  /** Unlocks a user's account, under each of its names, whatever address it was locked for. */
  unlock(connection: string, user: User): Promise<void>;
}

/**
 * Tries a proof: counts it before it is looked at, and what came of it.
 * @param prove looks at it; undefined is a wrong one.
 * @returns what `prove` does. @throws AuthError as {@link Attempts.admit}, and whatever `prove` throws.
 */
export async function tryProof<T>(
  attempts: Attempts,
  attempt: Attempt,
  prove: () => Promise<T | undefined>,
): Promise<T | undefined> {
  await attempts.admit(attempt);
  let proved: T | undefined;
  try {
    proved = await prove();
  } catch (thrown) {
    attempts.abandoned(attempt);
    throw thrown;
  }
  await (proved === undefined ? attempts.failed(attempt) : attempts.succeeded(attempt));
  return proved;
}

/** Compared and shown by SDKs and login widgets (wire-details 2.3). */
const LOCKED =
  "Your account has been blocked after multiple consecutive login attempts. We've sent you a notification via your preferred contact method with instructions on how to unblock it.";

/** The same for an address that was wrong about too many accounts. */
export const THROTTLED =
  'We have detected suspicious login behavior and further attempts will be blocked. Please contact the administrator.';

/** A lock ends so long after the last failure: 30 days. */
const LOCK_SECONDS = 30 * 86_400;

export interface AttemptsDependencies {
  store: Store;
  directory: Directory;
  clock: Clock;
  /** Called when an account gets locked; `notify` is whether the tenant wants its owner told. */
  onLocked(attempt: Attempt, options: { notify: boolean }): void;
  /** Called when an address gets throttled. */
  onThrottled(attempt: Attempt): void;
}

/** One of the counts that an attempt belongs to. */
interface Count extends Tally {
  /** So many failures, and it is full. */
  most: number;
  /** Whether a full count stands in the way, or is just told. */
  blocks: boolean;
  refusal: string;
  onFull(attempt: Attempt): void;
}

/** The failed proofs of a tenant. */
export function createAttempts(deps: AttemptsDependencies): Attempts {
  const { directory, clock, store } = deps;
  const failures = store.collection('failures');
  const reservations = createReservations();
  const countsOf = (attempt: Attempt) => [
    ...accountCount(deps, protectionSettings(directory), attempt),
    ...addressCount(deps, protectionSettings(directory), attempt),
  ];
  const release = (counts: readonly Count[]) => {
    for (const { id, blocks } of counts) if (blocks) reservations.release(id);
  };

  const reserve = (count: Count): Promise<void> =>
    reservations.take(count.id, async (judged) => {
      const failed = failuresNow(await failures.get(count.id), count, clock());
      // What time has not quite given back is not there yet.
      if (failed > count.most - 1) throw new AuthError(429, 'too_many_attempts', count.refusal);
      return failed + judged <= count.most - 1;
    });

  return {
    admit: async (attempt) => {
      const reserved: Count[] = [];
      for (const count of countsOf(attempt).filter(({ blocks }) => blocks)) {
        try {
          await reserve(count);
        } catch (thrown) {
          release(reserved);
          throw thrown;
        }
        reserved.push(count);
      }
    },
    failed: async (attempt) => {
      const counts = countsOf(attempt);
      try {
        const levels = await Promise.all(counts.map((count) => countFailure(failures, count, clock)));
        for (const [index, { most, onFull }] of counts.entries()) {
          const level = levels[index] ?? 0;
          // Told when it gets full, not for each that was under way at that time.
          if (level > most - 1 && level <= most) onFull(attempt);
        }
      } finally {
        release(counts);
      }
    },
    succeeded: async (attempt) => {
      const counts = countsOf(attempt);
      try {
        for (const { id, account } of counts) {
          if (account !== undefined && (await failures.get(id)) !== undefined) await failures.delete(id);
        }
      } finally {
        release(counts);
      }
    },
    abandoned: (attempt) => release(countsOf(attempt)),
    unlock: async (connection, { id, email, username, phone_number: phone }) => {
      for (const identifier of [id, email, username, phone]) {
        if (identifier === undefined) continue;
        await failures.deleteBy('account', accountOf({ connection, identifier }));
      }
    },
  };
}

/** The count of the account, from this address or from all; none where nothing locks it. */
function accountCount(
  { onLocked }: AttemptsDependencies,
  { bruteForceProtection: locks }: AttackProtection,
  attempt: Attempt,
): Count[] {
  if (!locks.enabled || attempt.locks === false || isListed(locks.allowlist, attempt.ip)) return [];
  const account = accountOf(attempt);
  const from = locks.mode === 'count_per_identifier' ? '' : addressKey(attempt.ip);
  return [
    {
      id: `account:${hash(`${account}\n${from}\n${attempt.step ?? ''}`)}`,
      account,
      most: locks.max_attempts,
      rate: Number.POSITIVE_INFINITY,
      lastsSeconds: LOCK_SECONDS,
      blocks: locks.shields.includes('block'),
      refusal: LOCKED,
      onFull: (full) => onLocked(full, { notify: locks.shields.includes('user_notification') }),
    },
  ];
}

/** The count of the address across accounts; none where it is not throttled. */
function addressCount(
  { onThrottled }: AttemptsDependencies,
  { suspiciousIpThrottling: throttling }: AttackProtection,
  { ip }: Attempt,
): Count[] {
  if (!throttling.enabled || isListed(throttling.allowlist, ip)) return [];
  const { max_attempts: most, rate } = throttling.stage['pre-login'];
  return [
    {
      id: `address:${hash(addressKey(ip))}`,
      most,
      rate,
      blocks: throttling.shields.includes('block'),
      refusal: THROTTLED,
      onFull: onThrottled,
    },
  ];
}

/**
 * By what was typed, not by whom it names: an account whose names share a count would tell that there is one,
 * and a lock that ends when somebody signs up would tell that they did.
 */
function accountOf({ connection, identifier }: Pick<Attempt, 'connection' | 'identifier'>): string {
  return hash(`${connection}\n${identifier.trim().toLowerCase().normalize('NFC')}`);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
