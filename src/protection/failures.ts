// Counters of failed attempts in the store. They are only written on failures.

import type { FailureRecord } from '../records/protection-state.ts';
import type { Frozen } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Collection, type Store, UniqueKeyError } from '../store/contract.ts';

/** A counter and its decay. */
export interface FailureCounter {
  id: string;
  /** The hash of the account; none for an address across accounts. */
  account?: string;
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

/** How many counters are kept. */
const MAX_COUNTERS = 100_000;

/**
 * Returns the counters of a store. Anybody can create one, by a wrong password for any identifier, and a lock lasts
 * for weeks. When there are too many, those without a recent failure are deleted first. To get rid of a lock this
 * way takes a hundred thousand failures elsewhere, from a thousand addresses a day.
 * @param max how many are kept. Counters of earlier runs of the process expire by themselves.
 */
export function createFailures(store: Store, clock: Clock, max: number = MAX_COUNTERS): Failures {
  const failures = store.collection('failures');
  const tracked = new Set<string>();
  const track = async (id: string): Promise<void> => {
    tracked.delete(id);
    tracked.add(id);
    const [oldest] = tracked;
    if (tracked.size <= max || oldest === undefined) return;
    tracked.delete(oldest);
    await failures.delete(oldest);
  };
  return {
    now: async (counter) => failuresNow(await failures.get(counter.id), counter, clock()),
    count: async (counter) => {
      const level = await countOne(failures, counter, clock);
      await track(counter.id);
      return level;
    },
    forget: async (id) => {
      tracked.delete(id);
      await failures.delete(id);
    },
    forgetAllOf: async (account) => {
      await failures.deleteBy('account', account);
    },
  };
}

async function countOne(
  failures: Collection<FailureRecord>,
  counter: FailureCounter,
  clock: Clock,
): Promise<number> {
  const { id, account, ip, rate, ttlSeconds } = counter;
  const next = (current?: Frozen<FailureRecord>): FailureRecord => {
    const at = clock();
    const level = failuresNow(current, counter, at) + 1;
    return {
      ...current,
      id,
      ...(account === undefined ? {} : { account }),
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
