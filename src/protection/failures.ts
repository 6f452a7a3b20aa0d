// Counters of failed attempts in the store, written only at failures.

import type { FailureRecord } from '../records/protection-state.ts';
import type { Frozen } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Collection, type Store, UniqueKeyError } from '../store/contract.ts';

/** A counter and its decay. */
export interface FailureCounter {
  id: string;
  /** The account it is about, hashed; none for an address across accounts. */
  account?: string;
  /** From where a failure comes, where an administrator is told. */
  ip?: string;
  /** Milliseconds after which one failure is forgotten; `Infinity`: only all at once. */
  rate: number;
  /** Seconds after the last failure until all are forgotten; where there is a rate that says it. */
  lastsSeconds?: number;
}

/** Failures that count now: those of the record, less those that time has taken back (a fraction, therefore). */
export function failuresNow(
  record: Pick<Frozen<FailureRecord>, 'failures' | 'at'> | undefined,
  { rate }: Pick<FailureCounter, 'rate'>,
  now: number,
): number {
  return record === undefined ? 0 : Math.max(0, record.failures - Math.max(0, now - record.at) / rate);
}

interface Failures {
  /** How many count now. */
  now(counter: FailureCounter): Promise<number>;
  /** Counts one more. @returns how many count now. */
  count(counter: FailureCounter): Promise<number>;
  /** Forgets them. */
  forget(id: string): Promise<void>;
  /** Forgets all of an account. @param account its hash. */
  forgetAllOf(account: string): Promise<void>;
}

/** Counts at most. */
const MOST = 100_000;

/**
 * The counts in a store. Anybody can make one, by a wrong password for a name that nobody has, and a lock lasts for
 * weeks: those that were not added to for longest go first when there are too many. Whoever wants to get rid of one
 * so has to be wrong a hundred thousand times elsewhere, from a thousand addresses a day.
 * @param most how many are kept; those of an earlier run of the process end by themselves.
 */
export function createFailures(store: Store, clock: Clock, most: number = MOST): Failures {
  const failures = store.collection('failures');
  const kept = new Set<string>();
  const keep = async (id: string): Promise<void> => {
    kept.delete(id);
    kept.add(id);
    const [oldest] = kept;
    if (kept.size <= most || oldest === undefined) return;
    kept.delete(oldest);
    await failures.delete(oldest);
  };
  return {
    now: async (counter) => failuresNow(await failures.get(counter.id), counter, clock()),
    count: async (counter) => {
      const level = await countOne(failures, counter, clock);
      await keep(counter.id);
      return level;
    },
    forget: async (id) => {
      kept.delete(id);
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
  const { id, account, ip, rate, lastsSeconds } = counter;
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
      expiresAt: Math.ceil(at / 1000 + (lastsSeconds ?? (level * rate) / 1000)),
    };
  };
  const known = await failures.update(id, next);
  if (known !== undefined) return known.failures;
  try {
    await failures.insert(next());
    return 1;
  } catch (thrown) {
    // A racer came first.
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    return (await failures.update(id, next))?.failures ?? 1;
  }
}
