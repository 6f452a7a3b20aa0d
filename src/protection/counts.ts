// The counts of failed attempts: of an account from one address, of an account from all strangers, of an address across
// accounts.
import type { Bucket } from '../records/limits.ts';
import { normalizePhone } from '../records/phone.ts';
import type { AttackProtection } from '../records/protection.ts';
import { sha256 } from '../runtime/secrets.ts';
import { addressKey, isListed } from './addresses.ts';
import type { Attempt, AttemptsDependencies } from './attempt.ts';
import { limits } from './declaration.ts';
import type { FailureCounter } from './failures.ts';
import { protectionSettings } from './settings.ts';

/** Compared and shown by SDKs and login widgets. */
const LOCKED =
  "Your account has been blocked after multiple consecutive login attempts. We've sent you a notification via your preferred contact method with instructions on how to unblock it.";

/** The same for an address that was wrong about too many accounts. */
export const THROTTLED =
  'We have detected suspicious login behavior and further attempts will be blocked. Please contact the administrator.';

/** A lock ends 30 days after the last failure. */
const LOCK_SECONDS = 30 * 86_400;

/** One of the counts that an attempt belongs to. */
export interface Count extends FailureCounter {
  /** Failures at which it is full. */
  most: number;
  /** Whether a full count blocks, or is only reported. */
  blocks: boolean;
  refusal: string;
  /** Whether a full count answers right proofs as wrong ones: a 429 would tell that two names are one account's. */
  isSilent?: boolean;
  onFull(attempt: Attempt): Promise<void>;
}

type Dependencies = Pick<AttemptsDependencies, 'config' | 'onLocked' | 'onThrottled'>;

/**
 * The counts of an attempt.
 * @param known the caller's room, where the account was proved by it before: others' failures are none of its.
 */
export function countsOf(deps: Dependencies, attempt: Attempt, known: string | undefined): Count[] {
  const settings = protectionSettings(deps.config);
  if (attempt.stage !== undefined) return addressCount(deps, settings, attempt);
  return [
    ...accountCount(deps, settings, attempt, known),
    ...guessesCount(deps, settings, attempt, known),
    ...wholeCounts(deps, settings, attempt, known),
    ...addressCount(deps, settings, attempt),
  ];
}

/** The count of the account, from this caller or from all; none where nothing locks it. */
function accountCount(
  { onLocked }: Dependencies,
  { bruteForceProtection: locks }: AttackProtection,
  attempt: Attempt,
  known: string | undefined,
): Count[] {
  if (!locks.enabled || attempt.locks === false || isListed(locks.allowlist, attempt.ip)) return [];
  const account = accountOf(attempt);
  const from = known ?? (locks.mode === 'count_per_identifier' ? '' : addressKey(attempt.ip));
  return [
    {
      id: `account:${sha256(`${account}\n${from}\n${attempt.step ?? ''}`)}`,
      account,
      ip: attempt.ip,
      most: locks.max_attempts,
      rate: Number.POSITIVE_INFINITY,
      lastsSeconds: LOCK_SECONDS,
      blocks: locks.shields.includes('block'),
      refusal: LOCKED,
      onFull: (full) =>
        onLocked(full, {
          notify: locks.shields.includes('user_notification'),
          lockedFor: known === undefined ? 'address' : 'known',
        }),
    },
  ];
}

/**
 * The count of the account from all who are no known callers of it: guesses that come from many addresses add up. A
 * success does not empty it: the owner's logins are no reason for more guesses of others. Of codes known callers
 * have such a count, too, and no setting switches it off: a code is as good as the number of its guesses is small.
 */
function guessesCount(
  { onLocked }: Dependencies,
  { bruteForceProtection: locks, rateLimits }: AttackProtection,
  attempt: Attempt,
  known: string | undefined,
): Count[] {
  const isCode = attempt.what === 'code';
  const isOff = !locks.enabled || attempt.locks === false || known !== undefined;
  // The second factor has its own count for each user.
  if (attempt.step !== undefined || (isOff && !isCode) || isListed(locks.allowlist, attempt.ip)) return [];
  const name = isCode ? 'codeFailures' : 'passwordFailures';
  const { capacity, perMinute }: Bucket = rateLimits[name] ?? limits[name];
  return [
    {
      id: guessesId(accountOf(attempt), attempt.what, known),
      most: capacity,
      rate: 60_000 / perMinute,
      blocks: isCode || locks.shields.includes('block'),
      refusal: LOCKED,
      onFull: (full) =>
        onLocked(full, {
          notify: locks.shields.includes('user_notification'),
          lockedFor: known === undefined ? 'strangers' : 'known',
        }),
    },
  ];
}

/**
 * The counts of an account across all its names, where the connection's users have several: otherwise each name would allow as
 * many guesses again. None for a caller who has proved the account before, and none where no account was found.
 */
function wholeCounts(
  deps: Dependencies,
  settings: AttackProtection,
  attempt: Attempt,
  known: string | undefined,
): Count[] {
  const { hasSeveralNames, userId: identifier, step } = attempt;
  if (hasSeveralNames !== true || identifier === undefined || known !== undefined || step !== undefined)
    return [];
  const whole = { ...attempt, identifier };
  return [...accountCount(deps, settings, whole, known), ...guessesCount(deps, settings, whole, known)].map(
    (count) => ({ ...count, isSilent: true }),
  );
}

/** The count of the address across accounts; none where it is not throttled. */
function addressCount(
  { onThrottled }: Dependencies,
  { suspiciousIpThrottling: throttling }: AttackProtection,
  { ip, stage }: Attempt,
): Count[] {
  if (!throttling.enabled || isListed(throttling.allowlist, ip)) return [];
  const { max_attempts: most, rate } = throttling.stage[stage ?? 'pre-login'];
  return [
    {
      id: addressId(ip, stage),
      most,
      rate,
      blocks: throttling.shields.includes('block'),
      refusal: THROTTLED,
      onFull: async (full) => onThrottled(full),
    },
  ];
}

/**
 * By what was typed, not by whom it names: an account whose names share a count would tell that there is one,
 * and a lock that ends when somebody signs up would tell that they did.
 */
export function accountOf({ connection, identifier }: Pick<Attempt, 'connection' | 'identifier'>): string {
  return sha256(`${connection}\n${nameKey(identifier)}`);
}

/** One text for all ways to type a name: spaces and dashes in a phone number would make it another one each time. */
export function nameKey(identifier: string): string {
  return normalizePhone(identifier) ?? identifier.trim().toLowerCase().normalize('NFC');
}

/** The id of the count of an account's guesses. @param account its hash. */
export function guessesId(account: string, what: Attempt['what'], known = ''): string {
  return `guesses:${sha256(`${account}\n${what}\n${known}`)}`;
}

/** The id of the count of an address across accounts. @param stage as attempts have it. */
export function addressId(ip: string, stage: Attempt['stage'] | '' = ''): string {
  return `address:${sha256(addressKey(ip))}${stage && `:${stage}`}`;
}
