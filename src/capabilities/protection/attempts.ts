// Counts wrong passwords and codes of every kind of login (password grant, hosted page, passwordless, MFA), and
// locks accounts.

import type { Context } from 'koa';
import { addressKey } from '../../http/addresses.ts';
import { AuthError } from '../../http/errors.ts';
import type { Bucket } from '../../http/limits.ts';
import { lookupEmail, normalizePhone } from '../../records/base/email.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { TriesRecord } from '../../records/state/leases.ts';
import type { FailureRecord } from '../../records/state/protection-state.ts';
import type { AttackProtection } from '../../records/tenant/protection.ts';
import { CONSOLE_DIRECTORY } from '../../records/users/administrators.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Random, sha256, systemRandom } from '../../runtime/secrets.ts';
import { type Collection, type Store, UniqueKeyError } from '../../store/contract.ts';
import type { User } from '../../users/user.ts';
import type { Attempt, AttemptsDependencies } from './attempt.ts';
import { protectionLimits } from './protection-declaration.ts';
import { type Caller, type CallerLookup, isListed, protectionOf, type RateLimits } from './rate-limit.ts';

/** An attempt that may be verified. Exactly one of its three functions must be called. */
interface AdmittedAttempt {
  /** The key that attempts of a known caller are counted under; undefined for a stranger. */
  callerKey: string | undefined;
  /**
   * Adds names of the account that only the verification has found out, such as the user that a custom database
   * returned. The outcome is counted under them, too, and a right proof is treated as wrong if one has no attempts left.
   * Waits while so many others that reached it await their outcome that this one could exceed the limit.
   * @returns whether all have attempts left: if not, nothing may be done for a right proof.
   */
  reached(accounts: readonly string[]): Promise<boolean>;
  /**
   * Returns whether the account that was reached has no attempts left, whatever was typed. A right proof is then
   * treated as wrong.
   */
  isExhausted(): boolean;
  failed(): Promise<void>;
  /** Ends a right proof: clears the account's failures from this caller, and makes the caller known. */
  succeeded(): Promise<void>;
  /** Ends an attempt without a result, for example when the server was too busy to verify it. */
  abandoned(): void;
}

export interface Attempts {
  /**
   * Called before a proof is verified. Waits while so many attempts are being verified that this one could exceed
   * the limit.
   * @throws AuthError 429 `too_many_attempts` when the account is locked for this caller, or the address is
   *   throttled. An account that does not exist is locked in the same way.
   */
  admit(attempt: Attempt): Promise<AdmittedAttempt>;
  // docs/understand/decisions/passwords-protection.md#when-an-administrator-unlocks-an-account-all-its-failed-attempts-are-deleted
  /**
   * Unlocks a user's account under each of its identifiers, for all addresses. The limit for strangers is not
   * reset; instead the caller becomes known.
   */
  unlock(connection: string, user: User, caller: Caller): Promise<void>;
}

/**
 * @param prove verifies the proof; undefined means it is wrong.
 * @returns the result of `prove`.
 * @throws AuthError as {@link Attempts.admit}, and whatever `prove` throws.
 */
export async function tryProof<T>(
  attempts: Attempts,
  attempt: Attempt,
  prove: (admitted: Pick<AdmittedAttempt, 'callerKey' | 'reached' | 'isExhausted'>) => Promise<T | undefined>,
): Promise<T | undefined> {
  const admitted = await attempts.admit(attempt);
  let accepted: T | undefined;
  try {
    const result = await prove(admitted);
    accepted = admitted.isExhausted() ? undefined : result;
  } catch (thrown) {
    admitted.abandoned();
    throw thrown;
  }
  await (accepted === undefined ? admitted.failed() : admitted.succeeded());
  return accepted;
}

function createCounting({ callers, clock, store }: AttemptsDependencies) {
  const failures = createFailures(store, clock);
  const reservations = store.exclusive === true ? localReservations() : sharedReservations({ store, clock });

  const reserve = async (all: readonly Count[]): Promise<{ release: () => void; isExhausted: boolean }> => {
    const counts = all.filter(({ blocks }) => blocks);
    let isExhausted = false;
    const readAllowed = async () => {
      const failed = await Promise.all(counts.map((count) => failures.now(count)));
      // The level is a fraction: a failure that is not fully forgotten still counts.
      const left = counts.map(({ max }, index) => max - (failed[index] ?? 0));
      const full = counts.filter((_, index) => (left[index] ?? 0) < 1);
      const reported = full.find((count) => count.isSilent !== true);
      if (reported !== undefined) throw new AuthError(429, 'too_many_attempts', reported.description);
      isExhausted = full.length > 0;
      return left.map((one, index) => (counts[index]?.isSilent && one < 1 ? Number.POSITIVE_INFINITY : one));
    };
    const release = await reservations.take(
      counts.map(({ id }) => id),
      readAllowed,
    );
    return { release, isExhausted };
  };

  const fail = async (attempt: Attempt, counts: readonly Count[], release: () => void): Promise<void> => {
    try {
      const levels = await Promise.all(counts.map((count) => failures.count(count)));
      for (const [index, { max, onFull }] of counts.entries()) {
        const level = levels[index] ?? 0;
        // Reported once, when the count gets full, and not for each concurrent attempt.
        if (level > max - 1 && level <= max) await onFull(attempt);
      }
    } finally {
      release();
    }
  };
  const succeed = async (
    attempt: Attempt,
    {
      counts,
      release,
      seen: lookup,
    }: { counts: readonly Count[]; release: () => void; seen: CallerLookup | undefined },
  ): Promise<void> => {
    const { userId, step } = attempt;
    const isFirst = userId !== undefined && step === undefined;
    try {
      await Promise.all([
        ...counts.map(({ id, account }) => account !== undefined && failures.forget(id)),
        isFirst && callers.remember(userId, attempt, lookup),
      ]);
    } finally {
      release();
    }
  };

  return { failures, reserve, fail, succeed };
}

export function createAttempts(deps: AttemptsDependencies): Attempts {
  const { callers } = deps;
  const { failures, reserve, fail, succeed } = createCounting(deps);
  return {
    admit: async (attempt) => {
      // Callers are known for the first factor only: an attacker who has the password would be known for the
      // second.
      const first = attempt.step === undefined;
      const lookup = first ? await callers.lookUp(attempt.userId, attempt) : undefined;
      const callerKey = lookup?.known?.key;
      // The same counts are used to the end of this attempt, so that what was reserved is released.
      const counts = countsOf(deps, attempt, callerKey);
      const { release, ...reserved } = await reserve(counts);
      const places = [release];
      const releaseAll = () => {
        for (const one of places) one();
      };
      let isExhausted = reserved.isExhausted;
      return {
        callerKey,
        reached: async (accounts) => {
          const known = new Set(counts.map(({ id }) => id));
          const added = reachedCounts(deps, { ...attempt, accounts }, callerKey);
          const fresh = added.filter(({ id }) => !known.has(id));
          // Guesses that reach one account at once, each by another name, take its places one after the other.
          const late = await reserve(fresh);
          places.push(late.release);
          counts.push(...fresh);
          isExhausted ||= late.isExhausted;
          return !isExhausted;
        },
        isExhausted: () => isExhausted,
        failed: () => fail(attempt, counts, releaseAll),
        succeeded: () => succeed(attempt, { counts, release: releaseAll, seen: lookup }),
        abandoned: releaseAll,
      };
    },
    unlock: async (connection, user, caller) => {
      const { id, email, username, phone_number: phone } = user;
      for (const identifier of [id, email, username, phone]) {
        if (identifier === undefined) continue;
        await failures.forgetAllOf(accountOf({ connection, identifier }));
      }
      await callers.remember(id, caller);
    },
  };
}

// Attempts that are being verified by any of several processes.

/** Pause before the next look for a place, milliseconds. A random part keeps two processes from colliding again. */
const PAUSE_MS = 20;
const JITTER_MS = 60;

/** The expiry of a record without attempts, epoch seconds: in the past by any clock. */
const LONG_AGO = 1;
/**
 * How long a record that a killed process left is kept, seconds. The store hides expired records by the clock of
 * each process; a process whose clock is ahead must not take the attempts of others for ended.
 */
const RETENTION_SECONDS = 366 * 86_400;

/**
 * Returns reservations that all processes of a store share. An attempt takes its place before it reads the counts.
 * A later attempt therefore sees it, either being verified or counted, so that two attempts cannot both take the
 * last place.
 */
export function sharedReservations(
  { store, clock: own }: { store: Store; clock: Clock },
  random: Random = systemRandom,
): Reservations {
  const tries = store.collection('tries');
  const clock = store.sharedClock ?? own;
  const removePlaces = async (keys: readonly string[], id: string): Promise<void> => {
    await Promise.all(
      keys.map((key) =>
        tries.update(key, (current) => {
          const { [id]: _ended, ...judged } = inProgress(current, clock());
          const isEmpty = Object.keys(judged).length === 0;
          return { ...current, judged, ...(isEmpty && { expiresAt: LONG_AGO }) };
        }),
      ),
    );
  };
  /** Adds an attempt under each key. @returns how many are being verified there, including this one. */
  const addPlaces = (keys: readonly string[], id: string): Promise<number[]> =>
    Promise.all(
      keys.map(async (key) => {
        const now = clock();
        const until = now + MAX_ATTEMPT_MS;
        const { judged } = await tries.upsert(key, (current) => ({
          id: key,
          judged: { ...inProgress(current, now), [id]: until },
          expiresAt: Math.ceil(until / 1000) + RETENTION_SECONDS,
        }));
        return Object.keys(judged).length;
      }),
    );
  return {
    take: async (keys, readAllowed) => {
      for (;;) {
        const id = random(9).toString('base64url');
        // A place that cannot be given back expires by itself.
        const releasePlaces = () => removePlaces(keys, id).catch(() => undefined);
        const sizes = await addPlaces(keys, id);
        try {
          const allowed = await readAllowed();
          if (sizes.every((size, index) => size <= (allowed[index] ?? 0))) return () => void releasePlaces();
        } catch (thrown) {
          await releasePlaces();
          throw thrown;
        }
        // Nothing is held while waiting, because two attempts that wait for each other would deadlock.
        await releasePlaces();
        const [jitter = 0] = random(1);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS + (jitter / 256) * JITTER_MS));
      }
    },
  };
}

function inProgress(current: Frozen<TriesRecord> | undefined, now: number): Record<string, number> {
  return Object.fromEntries(Object.entries(current?.judged ?? {}).filter(([, until]) => until > now));
}

// Attempts that are being verified. Guesses that are sent at once must not all be verified before the first failure
// is counted.

/** Places of attempts under keys. */
interface Reservations {
  // docs/understand/decisions/passwords-protection.md#attempts-that-are-being-checked-take-their-places-in-all-counts-at-once-or-in-none
  /**
   * Takes a place under each key, all or none. Waits while a key has no place left.
   * @param readAllowed returns how many attempts each key allows, including those being verified. It is called again when
   *   one has ended. Its errors are passed on.
   * @returns a function that gives the places back.
   */
  take(keys: readonly string[], readAllowed: () => Promise<readonly number[]>): Promise<() => void>;
}

/** How long an attempt keeps its place if it is never released, milliseconds. */
const MAX_ATTEMPT_MS = 30_000;

/** The attempts of a key that are being verified, and those that wait. */
interface Entry {
  running: NodeJS.Timeout[];
  waiting: (() => void)[];
  /** How many attempts have ended. */
  ended: number;
}

function createEntries() {
  const entries = new Map<string, Entry>();
  const drop = (key: string, entry: Entry) => {
    const isCurrent = entries.get(key) === entry;
    if (isCurrent && entry.running.length === 0 && entry.waiting.length === 0) entries.delete(key);
  };
  const ended = (key: string, entry: Entry) => {
    entry.ended++;
    for (const next of entry.waiting.splice(0)) next();
    drop(key, entry);
  };
  const hold = (key: string, entry: Entry) => {
    const timer = setTimeout(() => {
      entry.running = entry.running.filter((one) => one !== timer);
      ended(key, entry);
    }, MAX_ATTEMPT_MS);
    timer.unref();
    entry.running.push(timer);
  };
  /** Returns the entries of keys, each with how many of its attempts have ended so far. */
  const open = (keys: readonly string[]) =>
    keys.map((key) => {
      const entry = entries.get(key) ?? { running: [], waiting: [], ended: 0 };
      entries.set(key, entry);
      return { key, entry, ended: entry.ended };
    });
  return { entries, open, drop, ended, hold };
}

/** Returns reservations for the only process of a store. */
function localReservations(): Reservations {
  const { entries, open, drop, ended, hold } = createEntries();
  const release = (key: string): void => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    clearTimeout(entry.running.shift());
    ended(key, entry);
  };
  return {
    take: async (keys, readAllowed) => {
      for (;;) {
        const all = open(keys);
        let allowed: readonly number[];
        try {
          allowed = await readAllowed();
        } catch (thrown) {
          for (const { key, entry } of all) drop(key, entry);
          throw thrown;
        }
        // An attempt that ended in the meantime may have failed, so the levels are read again. New attempts are in
        // `judged`.
        if (all.some(({ key, entry, ended: before }) => entry.ended !== before || entries.get(key) !== entry))
          continue;
        const full = all.find(({ entry }, index) => entry.running.length > (allowed[index] ?? 0) - 1);
        if (full === undefined) {
          for (const { key, entry } of all) hold(key, entry);
          return () => {
            for (const key of keys) release(key);
          };
        }
        // Nothing is held while waiting, because two attempts that wait for each other would deadlock.
        const freed = new Promise<void>((resolve) => full.entry.waiting.push(resolve));
        for (const { key, entry } of all) drop(key, entry);
        await freed;
      }
    },
  };
}

// Counts of failed attempts: of an account from one address, of an account from all strangers, and of an address
// across accounts.

/** SDKs and login widgets compare and show this text. */
const LOCKED_DESCRIPTION =
  "Your account has been blocked after multiple consecutive login attempts. We've sent you a notification via your preferred contact method with instructions on how to unblock it.";

/** The text for an address with too many failures across accounts. */
export const THROTTLED_DESCRIPTION =
  'We have detected suspicious login behavior and further attempts will be blocked. Please contact the administrator.';

/** A lock ends 30 days after the last failure. */
const LOCK_SECONDS = 30 * 86_400;

interface Count extends FailureCounter {
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
 * @param callerKey the key of a known caller, to whom failures of others do not apply; undefined for a stranger.
 */
function countsOf(deps: Dependencies, attempt: Attempt, callerKey: string | undefined): Count[] {
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
  // docs/understand/decisions/passwords-protection.md#a-failed-proof-is-counted-for-the-account-and-the-address-it-came-from
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
  const limit = isCode ? protectionLimits.codeFailures : protectionLimits.passwordFailures;
  const { capacity, perMinute }: Bucket = rateLimits[limit.name] ?? limit;
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
function reachedCounts(deps: Dependencies, attempt: Attempt, callerKey: string | undefined): Count[] {
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

// Counters of failed attempts in the store. They are only written on failures.
// docs/understand/decisions/passwords-protection.md#counts-of-failures-survive-a-restart

interface FailureCounter {
  id: string;
  /** The hash of the account; none for an address across accounts. */
  account?: string;
  /** For the count of an account that was reached: the hash of what was typed, by which it is found and ended, too. */
  typed?: string;
  /** The address, which administrators are shown. */
  ip?: string;
  /** Milliseconds after which one failure is forgotten. `Infinity`: they are only forgotten all at once. */
  rate: number;
  /** Seconds after the last failure until all are forgotten; by default they follow from `rate`. */
  ttlSeconds?: number;
}

/** Returns the failures that count now: those of the record minus those forgotten since. The result is a fraction. */
export function failuresNow(
  record: Pick<Frozen<FailureRecord>, 'failures' | 'at'> | undefined,
  { rate }: Pick<FailureCounter, 'rate'>,
  now: number,
): number {
  return record === undefined ? 0 : Math.max(0, record.failures - Math.max(0, now - record.at) / rate);
}

interface Failures {
  now(counter: FailureCounter): Promise<number>;
  /** @returns how many count now. */
  count(counter: FailureCounter): Promise<number>;
  forget(id: string): Promise<void>;
  /** Deletes all counters of an account. @param account its hash. */
  forgetAllOf(account: string): Promise<void>;
}

/**
 * Returns the counters of a store. Anybody can create one, by a wrong password for any identifier, and a lock lasts
 * for weeks. So the store bounds them, and a network with too many gets no more attempts: were old counters deleted
 * instead, it could get rid of a lock by failures elsewhere.
 */
function createFailures(store: Store, clock: Clock): Failures {
  const failures = store.collection('failures');
  return {
    now: async (counter) => failuresNow(await failures.get(counter.id), counter, clock()),
    count: (counter) => countOne(failures, counter, clock),
    forget: async (id) => {
      await failures.delete(id);
    },
    forgetAllOf: async (account) => {
      await failures.deleteBy('account', account);
    },
  };
}

/** How many typed names a count is found by. */
const MAX_TYPED = 8;

function latestTyped(before: readonly string[] | undefined, typed: string): string[] {
  return [...(before ?? []).filter((one) => one !== typed), typed].slice(-MAX_TYPED);
}

async function countOne(
  failures: Collection<FailureRecord>,
  counter: FailureCounter,
  clock: Clock,
): Promise<number> {
  const { id, account, typed, ip, rate, ttlSeconds } = counter;
  const next = (current?: Frozen<FailureRecord>): FailureRecord => {
    const at = clock();
    const level = failuresNow(current, counter, at) + 1;
    const { typed: before, ...rest } = current ?? {};
    return {
      ...rest,
      id,
      ...(account === undefined ? {} : { account }),
      ...(typed === undefined ? {} : { typed: latestTyped(before, typed) }),
      ...(ip === undefined ? {} : { ip }),
      failures: level,
      at,
      expiresAt: Math.ceil(at / 1000 + (ttlSeconds ?? (level * rate) / 1000)),
    };
  };
  const known = await failures.update(id, next);
  if (known !== undefined) return known.failures;
  try {
    await failures.insert(next());
    return 1;
  } catch (thrown) {
    // Another process has inserted it first.
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    return (await failures.update(id, next))?.failures ?? 1;
  }
}

// The rate limit of passwords, at every endpoint that takes one.

/** Counts a password that is tried. @throws AuthError 429 if there were too many for a user from one IP address. */
export type LimitLogin = (ctx: Context, connection: { name: string }, identifier: string) => Promise<void>;

export function limitLogins(rateLimits: Pick<RateLimits, 'takeFrom'>): LimitLogin {
  return (ctx, connection, identifier) =>
    rateLimits.takeFrom(ctx, protectionLimits.login, `${connection.name}\n${nameKey(identifier)}`);
}
