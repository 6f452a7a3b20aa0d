// Counts of failed attempts: of an account from one address, of an account from all strangers, and of an address
// across accounts.

import { CONSOLE_DIRECTORY } from '../../records/administrators.ts';
import { lookupEmail } from '../../records/email.ts';
import type { Bucket } from '../../records/limits.ts';
import { normalizePhone } from '../../records/phone.ts';
import type { AttackProtection } from '../../records/protection.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { addressKey, isListed } from './addresses.ts';
import type { Attempt, AttemptsDependencies } from './attempt.ts';
import { limits } from './declaration.ts';
import type { FailureCounter } from './failures.ts';
import { protectionOf } from './settings.ts';

/** SDKs and login widgets compare and show this text. */
const LOCKED_DESCRIPTION =
  "Your account has been blocked after multiple consecutive login attempts. We've sent you a notification via your preferred contact method with instructions on how to unblock it.";

/** The text for an address with too many failures across accounts. */
export const THROTTLED_DESCRIPTION =
  'We have detected suspicious login behavior and further attempts will be blocked. Please contact the administrator.';

/** A lock ends 30 days after the last failure. */
const LOCK_SECONDS = 30 * 86_400;

/** One of the counts that an attempt belongs to. */
export interface Count extends FailureCounter {
  /** The number of failures that fills it. */
  max: number;
  /** Whether a full count rejects attempts, or is only reported. */
  blocks: boolean;
  description: string;
  /**
   * Whether attempts beyond this count are answered as wrong, even right ones, and not with 429. A 429 would reveal
   * that two identifiers belong to one account.
   */
  isSilent?: boolean;
  onFull(attempt: Attempt): Promise<void>;
}

type Dependencies = Pick<AttemptsDependencies, 'config' | 'onLocked' | 'onThrottled'>;

/**
 * Returns the counts of an attempt.
 * @param callerKey the key of a known caller, to whom failures of others do not apply; undefined for a stranger.
 */
export function countsOf(deps: Dependencies, attempt: Attempt, callerKey: string | undefined): Count[] {
  const settings = protectionOf(deps.config, attempt);
  if (attempt.stage !== undefined) return addressCount(deps, settings, attempt);
  return [
    ...accountCount(deps, settings, attempt, callerKey),
    ...accountTotalCount(deps, settings, attempt, callerKey),
    ...reachedCounts(deps, attempt, callerKey),
    ...addressCount(deps, settings, attempt),
  ];
}

/** Returns the count of the account from this caller or address; none when the account is not locked for failures. */
function accountCount(
  { onLocked }: Dependencies,
  { bruteForceProtection: locks }: AttackProtection,
  attempt: Attempt,
  callerKey: string | undefined,
): Count[] {
  if (!locks.enabled || attempt.locksAccount === false || isListed(locks.allowlist, attempt.ip)) return [];
  const account = accountOf(attempt);
  // A known caller has a count of its own. Strangers have one for each address, or one for all of them.
  const from = callerKey ?? (locks.mode === 'count_per_identifier' ? '' : addressKey(attempt.ip));
  return [
    {
      id: `account:${sha256(`${account}\n${from}\n${attempt.step ?? ''}`)}`,
      account,
      ip: attempt.ip,
      max: locks.max_attempts,
      rate: Number.POSITIVE_INFINITY,
      ttlSeconds: LOCK_SECONDS,
      blocks: locks.shields.includes('block'),
      description: LOCKED_DESCRIPTION,
      onFull: (full) =>
        onLocked(full, {
          notify: locks.shields.includes('user_notification'),
          lockedFor: callerKey === undefined ? 'address' : 'known',
        }),
    },
  ];
}

/**
 * Returns the count of the account from all strangers, which adds up guesses from many addresses. A success does
 * not clear it: the owner's logins must not allow others more guesses. For codes, known callers have such a count,
 * too, and no setting switches it off, because a short code is only safe while guesses are few.
 */
function accountTotalCount(
  { onLocked }: Dependencies,
  { bruteForceProtection: locks, rateLimits }: AttackProtection,
  attempt: Attempt,
  callerKey: string | undefined,
): Count[] {
  const isCode = attempt.proof === 'code';
  const isOff = !locks.enabled || attempt.locksAccount === false || callerKey !== undefined;
  // The second factor has its own count for each user.
  if (attempt.step !== undefined || (isOff && !isCode) || isListed(locks.allowlist, attempt.ip)) return [];
  const name = isCode ? 'codeFailures' : 'passwordFailures';
  const { capacity, perMinute }: Bucket = rateLimits[name] ?? limits[name];
  return [
    {
      id: accountTotalId(accountOf(attempt), attempt.proof, callerKey),
      max: capacity,
      rate: 60_000 / perMinute,
      blocks: isCode || locks.shields.includes('block'),
      description: LOCKED_DESCRIPTION,
      onFull: (full) =>
        onLocked(full, {
          notify: locks.shields.includes('user_notification'),
          lockedFor: callerKey === undefined ? 'strangers' : 'known',
        }),
    },
  ];
}

/**
 * Returns the counts of the account that was reached, whatever was typed ({@link Attempt.accounts}). They are silent,
 * so that they tell nobody which names belong to one account, or that there is one.
 */
export function reachedCounts(deps: Dependencies, attempt: Attempt, callerKey: string | undefined): Count[] {
  const settings = protectionOf(deps.config, attempt);
  const typed = accountOf(attempt);
  return (attempt.accounts ?? []).flatMap((identifier) => {
    const byAccount = { ...attempt, identifier };
    return [
      ...accountCount(deps, settings, byAccount, callerKey),
      ...accountTotalCount(deps, settings, byAccount, callerKey),
    ].map((count) => ({ ...count, ...(count.account !== undefined && { typed }), isSilent: true }));
  });
}

/** Returns the count of the address across accounts; none when it is not throttled. */
function addressCount(
  { onThrottled }: Dependencies,
  { suspiciousIpThrottling: throttling }: AttackProtection,
  { connection, ip, stage }: Attempt,
): Count[] {
  if (!throttling.enabled || isListed(throttling.allowlist, ip)) return [];
  const { max_attempts: max, rate } = throttling.stage[stage ?? 'pre-login'];
  return [
    {
      // Logins of users from the same address, which the tenant may allow in any number, are not an administrator's.
      id: addressId(ip, connection === CONSOLE_DIRECTORY ? 'console' : stage),
      max,
      rate,
      blocks: throttling.shields.includes('block'),
      description: THROTTLED_DESCRIPTION,
      onFull: async (full) => onThrottled(full),
    },
  ];
}

/**
 * Returns the key of an account: a hash of the typed identifier, or of a name of the account that it reached. Only
 * the count of the former is shown to the caller: if identifiers of one account shared a visible count, it would
 * reveal that the account exists; and a lock that ended with a sign-up would reveal that.
 */
export function accountOf({ connection, identifier }: Pick<Attempt, 'connection' | 'identifier'>): string {
  return sha256(`${connection}\n${nameKey(identifier)}`);
}

/** Characters that directories and databases do not compare: marks, controls, characters of no width, spaces. */
const NOT_COMPARED = /[\u0300-\u036f\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Returns one text for the ways to type a name that systems compare as equal: case, width, spaces and characters of no
 * width (RFC 4518 §2, RFC 8265 §3), accents (the usual collations of databases), the spelling of an international domain, and the form of a phone number.
 * It is only for counting: names with equal keys need not be of one account.
 */
export function nameKey(identifier: string): string {
  return (
    normalizePhone(identifier) ??
    (lookupEmail(identifier) ?? identifier)
      .normalize('NFKD')
      .replace(NOT_COMPARED, '')
      .toUpperCase()
      .toLowerCase()
  );
}

/** The id of the count of an account's guesses. @param account its hash. */
export function accountTotalId(account: string, proof: Attempt['proof'], callerKey = ''): string {
  return `guesses:${sha256(`${account}\n${proof}\n${callerKey}`)}`;
}

/**
 * The id of the count of an address across accounts.
 * @param stage {@link Attempt.stage}; the empty text for a login, `console` for one of an administrator.
 */
export function addressId(ip: string, stage: Attempt['stage'] | 'console' | '' = ''): string {
  return `address:${sha256(addressKey(ip))}${stage && `:${stage}`}`;
}
