// Counts wrong passwords and codes of every way to log in (password grant, hosted page, passwordless, MFA), and locks.

import { AuthError } from '../http/errors.ts';
import type { User } from '../users/user.ts';
import type { Attempt, AttemptsDependencies } from './attempt.ts';
import type { Caller, SeenCaller } from './callers.ts';
import { accountOf, type Count, countsOf } from './counts.ts';
import { createFailures } from './failures.ts';
import { localReservations } from './reservations.ts';
import { sharedReservations } from './shared-reservations.ts';

/** A try that may be judged; it must end in exactly one of these. */
interface AdmittedAttempt {
  /** The room of a caller by whom the account was proved before; undefined for a stranger. */
  known: string | undefined;
  /** Whether the account has no more tries under any of its names: a right proof counts as a wrong one. */
  isSpent: boolean;
  /** The proof was wrong. */
  failed(): Promise<void>;
  /** The proof was right: the count of the account from here starts anew, and the caller is known from now on. */
  succeeded(): Promise<void>;
  /** The try came to no judgement, such as when the server was too busy for it. */
  abandoned(): void;
}

export interface Attempts {
  /**
   * Asked before a proof is looked at. Waits while so many are being looked at that this one might be one too many.
   * @throws AuthError 429 `too_many_attempts` when the account is locked for this caller, or the address is
   *   throttled; whether there is such an account makes no difference.
   */
  admit(attempt: Attempt): Promise<AdmittedAttempt>;
  /**
   * Unlocks a user's account, under each of its names, whatever address it was locked for. Strangers have no more
   * room than before: the one who unlocks it is made known instead.
   */
  unlock(connection: string, user: User, caller: Caller): Promise<void>;
}

/**
 * Tries a proof: counts it before it is looked at, and what came of it.
 * @param prove looks at it; undefined is a wrong one. It is told the caller's room, as in {@link AdmittedAttempt}.
 * @returns what `prove` does. @throws AuthError as {@link Attempts.admit}, and whatever `prove` throws.
 */
export async function tryProof<T>(
  attempts: Attempts,
  attempt: Attempt,
  prove: (known: string | undefined) => Promise<T | undefined>,
): Promise<T | undefined> {
  const admitted = await attempts.admit(attempt);
  let proved: T | undefined;
  try {
    const judged = await prove(admitted.known);
    proved = admitted.isSpent ? undefined : judged;
  } catch (thrown) {
    admitted.abandoned();
    throw thrown;
  }
  await (proved === undefined ? admitted.failed() : admitted.succeeded());
  return proved;
}

/** Counts attempts: takes places before a proof is looked at, counts or forgives after it, and gives them back. */
function createCounting({ callers, clock, store, mostCounts }: AttemptsDependencies) {
  const failures = createFailures(store, clock, mostCounts);
  const reservations = store.exclusive === true ? localReservations() : sharedReservations({ store, clock });

  const reserve = async (all: readonly Count[]): Promise<{ release: () => void; isSpent: boolean }> => {
    const counts = all.filter(({ blocks }) => blocks);
    let isSpent = false;
    const look = async () => {
      const failed = await Promise.all(counts.map((count) => failures.now(count)));
      // The counter is a fraction: a failure not fully forgotten still counts.
      const room = counts.map(({ most }, index) => most - (failed[index] ?? 0));
      const full = counts.filter((_, index) => (room[index] ?? 0) < 1);
      const told = full.find((count) => count.isSilent !== true);
      if (told !== undefined) throw new AuthError(429, 'too_many_attempts', told.refusal);
      isSpent = full.length > 0;
      return room.map((one, index) => (counts[index]?.isSilent && one < 1 ? Number.POSITIVE_INFINITY : one));
    };
    const release = await reservations.take(
      counts.map(({ id }) => id),
      look,
    );
    return { release, isSpent };
  };

  const fail = async (attempt: Attempt, counts: readonly Count[], release: () => void): Promise<void> => {
    try {
      const levels = await Promise.all(counts.map((count) => failures.count(count)));
      for (const [index, { most, onFull }] of counts.entries()) {
        const level = levels[index] ?? 0;
        // Reported once, when it gets full, not for each concurrent attempt.
        if (level > most - 1 && level <= most) await onFull(attempt);
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
      seen,
    }: { counts: readonly Count[]; release: () => void; seen: SeenCaller | undefined },
  ): Promise<void> => {
    const { userId, step } = attempt;
    const isFirst = userId !== undefined && step === undefined;
    try {
      await Promise.all([
        ...counts.map(({ id, account }) => account !== undefined && failures.forget(id)),
        isFirst && callers.remember(userId, attempt, seen),
      ]);
    } finally {
      release();
    }
  };

  return { failures, reserve, fail, succeed };
}

/** The failed proofs of a tenant. */
export function createAttempts(deps: AttemptsDependencies): Attempts {
  const { callers } = deps;
  const { failures, reserve, fail, succeed } = createCounting(deps);
  return {
    admit: async (attempt) => {
      // Known callers count for the first factor only: a thief of the password must not be known for the second.
      const first = attempt.step === undefined;
      const seen = first ? await callers.look(attempt.userId, attempt) : undefined;
      const known = seen?.known?.room;
      // Who is known now is so to the end of this try: what was reserved is what is released.
      const counts = countsOf(deps, attempt, known);
      const { release, isSpent } = await reserve(counts);
      return {
        known,
        isSpent,
        failed: () => fail(attempt, counts, release),
        succeeded: () => succeed(attempt, { counts, release, seen }),
        abandoned: release,
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
