// Counts of failed proofs, kept in the store: of an account, of an address. Written at failures alone.
import type { Clock } from '../http/runtime.ts';
import type { FailureRecord } from '../store/collections.ts';
import { type Collection, type Frozen, UniqueKeyError } from '../store/contract.ts';

/** A count, and how it forgets. */
export interface Tally {
  id: string;
  /** The account it is about, hashed; none for an address across accounts. */
  account?: string;
  /** Milliseconds after which one failure is forgotten; `Infinity` where none is before all are. */
  rate: number;
  /** Seconds after the last failure until all are forgotten; where there is a rate that says it. */
  lastsSeconds?: number;
}

/** Failures that count now: those of the record, less those that time has taken back (a fraction, therefore). */
export function failuresNow(
  record: Pick<Frozen<FailureRecord>, 'failures' | 'at'> | undefined,
  { rate }: Pick<Tally, 'rate'>,
  now: number,
): number {
  return record === undefined ? 0 : Math.max(0, record.failures - Math.max(0, now - record.at) / rate);
}

/**
 * Counts one failure more.
 * @returns how many count now.
 */
export async function countFailure(
  failures: Collection<FailureRecord>,
  tally: Tally,
  clock: Clock,
): Promise<number> {
  const { id, account, rate, lastsSeconds } = tally;
  const next = (current?: Frozen<FailureRecord>): FailureRecord => {
    const at = clock();
    const level = failuresNow(current, tally, at) + 1;
    return {
      ...current,
      id,
      ...(account === undefined ? {} : { account }),
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
