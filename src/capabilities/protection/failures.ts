// Counters of failed attempts in the store. They are only written on failures.

import type { FailureRecord } from '../../records/protection-state.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Collection, type Store, UniqueKeyError } from '../../store/contract.ts';

/** A counter and its decay. */
export interface FailureCounter {
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
  /** Returns how many failures count now. */
  now(counter: FailureCounter): Promise<number>;
  /** Adds a failure. @returns how many count now. */
  count(counter: FailureCounter): Promise<number>;
  /** Deletes a counter. */
  forget(id: string): Promise<void>;
  /** Deletes all counters of an account. @param account its hash. */
  forgetAllOf(account: string): Promise<void>;
}

/**
 * Returns the counters of a store. Anybody can create one, by a wrong password for any identifier, and a lock lasts
 * for weeks. So the store bounds them, and a network with too many gets no more attempts: were old counters deleted
 * instead, it could get rid of a lock by failures elsewhere.
 */
export function createFailures(store: Store, clock: Clock): Failures {
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
