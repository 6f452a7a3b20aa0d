// Counts wrong passwords and codes of every kind of login (password grant, hosted page, passwordless, MFA), and
// locks accounts.
import { AuthError } from '../../http/errors.ts';
import type { TriesRecord } from '../../records/leases.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Random, systemRandom } from '../../runtime/random.ts';
import type { Store } from '../../store/contract.ts';
import type { User } from '../../users/user.ts';
import type { Attempt, AttemptsDependencies } from './attempt.ts';
import type { Caller, CallerLookup } from './callers.ts';
import { accountOf, type Count, countsOf, reachedCounts } from './counts.ts';
import { createFailures } from './failures.ts';
import { localReservations, MAX_ATTEMPT_MS, type Reservations } from './reservations.ts';

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
  /** Counts a wrong proof. */
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
  /**
   * Unlocks a user's account under each of its identifiers, for all addresses. The limit for strangers is not
   * reset; instead the caller becomes known.
   */
  unlock(connection: string, user: User, caller: Caller): Promise<void>;
}

/**
 * Runs a verification, and counts its failure.
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

/** Returns the functions that reserve attempts, count failures, and forgive them. */
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

/** Returns the attempts of a tenant. */
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
