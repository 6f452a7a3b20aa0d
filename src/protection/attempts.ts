// Failed proofs of who somebody is, whatever way in (password grant, hosted page, passwordless, MFA):
// counted per account and address, and per address across accounts (wire-details 12.3).
import { createHash } from 'node:crypto';
import { AuthError } from '../http/errors.ts';
import type { Clock } from '../http/runtime.ts';
import type { FailureRecord } from '../store/collections.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';
import type { Directory } from '../tenant/directory.ts';
import type { AttackProtection } from '../tenant/schema-protection.ts';
import { addressKey, isListed } from './addresses.ts';
import { createReservations } from './reservations.ts';
import { protectionSettings } from './settings.ts';

/** Whose proof is tried, and from where. */
export interface Attempt {
  /** The connection's name. */
  connection: string;
  /** The user's id, or what was typed where there is no such user: an account has one count, however it is named. */
  identifier: string;
  ip: string;
  /** The connection's `brute_force_protection`; true where it says nothing. */
  locks?: boolean;
}

export interface Attempts {
  /**
   * Asked before a proof is looked at; every try that is admitted must end in `failed` or `succeeded`.
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
  /** Unlocks an account, whatever address it was locked for. */
  unlock(connection: string, identifier: string): Promise<void>;
}

/** Compared and shown by SDKs and login widgets (wire-details 2.3). */
const LOCKED =
  "Your account has been blocked after multiple consecutive login attempts. We've sent you a notification via your preferred contact method with instructions on how to unblock it.";
const THROTTLED =
  'We have detected suspicious login behavior and further attempts will be blocked. Please contact the administrator.';

/** A lock ends so long after the last failure: 30 days. */
const LOCK_SECONDS = 30 * 86_400;
/** An owner is told of a lock at most once an hour. */
const NOTICE_PAUSE = 3_600_000;

export interface AttemptsDependencies {
  store: Store;
  directory: Directory;
  clock: Clock;
  /** Called when an account gets locked, at most once an hour for each address. */
  onLocked(attempt: Attempt): void;
}

/** The failed proofs of a tenant. */
export function createAttempts(deps: AttemptsDependencies): Attempts {
  const { directory, clock } = deps;
  const failures = deps.store.collection('failures');
  const reservations = createReservations();
  const settings = () => protectionSettings(directory);

  const countOf = async (key: string): Promise<number> => (await failures.get(key))?.failures ?? 0;

  const addressIsOut = async (ip: string): Promise<boolean> => {
    const { suspiciousIpThrottling: throttling } = settings();
    const { max_attempts: most, rate } = throttling.stage['pre-login'];
    if (!throttling.enabled || isListed(throttling.allowlist, ip)) return false;
    // What time has not quite given back is not there yet.
    return leaked(await failures.get(addressId(ip)), rate, clock()) > most - 1;
  };

  return {
    admit: async (attempt) => {
      const key = accountId(settings(), attempt);
      if (await addressIsOut(attempt.ip)) throw new AuthError(429, 'too_many_attempts', THROTTLED);
      if (key === undefined) return;
      const { max_attempts: most } = settings().bruteForceProtection;
      await reservations.take(key, async (judged) => {
        const failed = await countOf(key);
        if (failed >= most) throw new AuthError(429, 'too_many_attempts', LOCKED);
        return failed + judged < most;
      });
    },
    failed: async (attempt) => {
      const key = accountId(settings(), attempt);
      const { bruteForceProtection: locks, suspiciousIpThrottling: throttling } = settings();
      try {
        const counted = key === undefined ? undefined : await count(deps, key, accountOf(attempt));
        if (throttling.enabled) await countAddress(deps, attempt.ip, throttling.stage['pre-login'].rate);
        if (key === undefined || counted === undefined || counted < locks.max_attempts) return;
        if (locks.shields.includes('user_notification') && (await mayNotify(deps, key)))
          deps.onLocked(attempt);
      } finally {
        if (key !== undefined) reservations.release(key);
      }
    },
    succeeded: async (attempt) => {
      const key = accountId(settings(), attempt);
      if (key === undefined) return;
      try {
        if ((await failures.get(key)) !== undefined) await failures.delete(key);
      } finally {
        reservations.release(key);
      }
    },
    abandoned: (attempt) => {
      const key = accountId(settings(), attempt);
      if (key !== undefined) reservations.release(key);
    },
    unlock: async (connection, identifier) => {
      await failures.deleteBy('account', accountOf({ connection, identifier }));
    },
  };
}

/** One failure more. @returns how many there are. */
async function count({ store, clock }: AttemptsDependencies, id: string, account: string): Promise<number> {
  const failures = store.collection('failures');
  const at = clock();
  const expiresAt = Math.ceil(at / 1000) + LOCK_SECONDS;
  const again = () =>
    failures.update(id, (current) => ({ ...current, failures: current.failures + 1, at, expiresAt }));
  const known = await again();
  if (known !== undefined) return known.failures;
  try {
    await failures.insert({ id, account, failures: 1, at, expiresAt });
    return 1;
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    return (await again())?.failures ?? 1;
  }
}

/** The failures of an address, less those that time has taken back. */
function leaked(
  record: Pick<FailureRecord, 'failures' | 'at'> | undefined,
  rate: number,
  now: number,
): number {
  return record === undefined ? 0 : Math.max(0, record.failures - Math.max(0, now - record.at) / rate);
}

async function countAddress({ store, clock }: AttemptsDependencies, ip: string, rate: number): Promise<void> {
  const failures = store.collection('failures');
  const id = addressId(ip);
  const next = (current?: Pick<FailureRecord, 'failures' | 'at'>): FailureRecord => {
    const now = clock();
    const level = leaked(current, rate, now) + 1;
    return { id, failures: level, at: now, expiresAt: Math.ceil((now + level * rate) / 1000) };
  };
  if ((await failures.update(id, next)) !== undefined) return;
  try {
    await failures.insert(next());
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    await failures.update(id, next);
  }
}

/** Whether the owner was not told lately; from then on they were. */
async function mayNotify({ store, clock }: AttemptsDependencies, key: string): Promise<boolean> {
  let may = false;
  await store.collection('failures').update(key, (current) => {
    may = current.notifiedAt === undefined || clock() - current.notifiedAt >= NOTICE_PAUSE;
    return may ? { ...current, notifiedAt: clock() } : { ...current };
  });
  return may;
}

/** The count that a try belongs to; undefined where nothing is locked. */
function accountId({ bruteForceProtection: locks }: AttackProtection, attempt: Attempt): string | undefined {
  const applies = locks.enabled && locks.shields.includes('block') && attempt.locks !== false;
  if (!applies || isListed(locks.allowlist, attempt.ip)) return undefined;
  const from = locks.mode === 'count_per_identifier' ? '' : addressKey(attempt.ip);
  return `account:${hash(`${accountOf(attempt)}\n${from}`)}`;
}

function accountOf({ connection, identifier }: Pick<Attempt, 'connection' | 'identifier'>): string {
  return hash(`${connection}\n${identifier.trim().toLowerCase().normalize('NFC')}`);
}

function addressId(ip: string): string {
  return `address:${hash(addressKey(ip))}`;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
