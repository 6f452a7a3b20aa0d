// Work that only one process may do at a time: it holds a lease in the store, which expires soon after the process has
// ended.
import { isDeepStrictEqual } from 'node:util';
import type { Frozen } from '../records/base/record.ts';
import type { LeaseRecord } from '../records/state/leases.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/secrets.ts';
import { type Collection, type Store, UniqueKeyError, updateWithResult } from './contract.ts';

export interface Leases {
  /**
   * Does some work unless another process, or another call, is doing it.
   * @param name identifies the work.
   * @param work must stop and change nothing more when its signal says that the lease was lost.
   * @returns whether the work was done here.
   * @throws what `work` throws.
   */
  ifFree(name: string, work: (lost: AbortSignal) => Promise<void>): Promise<boolean>;
  /** As `ifFree`, but waits until the work is free. */
  afterOthers(name: string, work: (lost: AbortSignal) => Promise<void>): Promise<void>;
}

/** How long a lease is valid (seconds), and how often it is renewed (milliseconds). */
const VALIDITY_SECONDS = 30;
const RENEWAL_MS = 10_000;
/** How often to check whether a lease is free, in milliseconds. */
const POLL_MS = 100;

/** The end of a lease that was returned, in epoch seconds: past by any clock. */
const LONG_AGO = 1;
/**
 * How long an expired lease stays stored, in seconds: it stays visible to processes whose clock is ahead by less than
 * this.
 */
const RETENTION_SECONDS = 366 * 86_400;

/** Returns the leases of one process. A store that no other process can open needs no records of them. */
export function createLeases(deps: { store: Store; clock: Clock; random: Random }): Leases {
  const held = new Set<string>();
  const runUnderLease = deps.store.exclusive === true ? runExclusively : shared(deps);
  const ifFree: Leases['ifFree'] = async (name, work) => {
    if (held.has(name)) return false;
    held.add(name);
    try {
      return await runUnderLease(name, work);
    } finally {
      held.delete(name);
    }
  };
  return {
    ifFree,
    afterOthers: async (name, work) => {
      while (!(await ifFree(name, work))) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    },
  };
}

const runExclusively: Leases['ifFree'] = async (_name, work) => {
  await work(new AbortController().signal);
  return true;
};

function shared({
  store,
  clock: processClock,
  random,
}: {
  store: Store;
  clock: Clock;
  random: Random;
}): Leases['ifFree'] {
  const leases = store.collection('leases');
  const clock = store.sharedClock ?? processClock;
  const takeAbandoned = takeoverOfAbandoned(leases, clock);
  const take = async (lease: LeaseRecord): Promise<boolean> => {
    const free = await updateWithResult(leases, lease.id, (current) =>
      current.until <= clock() ? { result: true, next: lease } : { result: false },
    );
    if (free !== undefined) return free || takeAbandoned(lease);
    try {
      await leases.insert(lease);
      return true;
    } catch (thrown) {
      if (thrown instanceof UniqueKeyError) return false;
      throw thrown;
    }
  };
  return async (name, work) => {
    const holder = random(16).toString('base64url');
    const newLease = (): LeaseRecord => {
      const until = clock() + VALIDITY_SECONDS * 1000;
      return { id: name, holder, until, expiresAt: Math.ceil(until / 1000) + RETENTION_SECONDS };
    };
    if (!(await take(newLease()))) return false;
    const lost = new AbortController();
    const change = (next: Pick<LeaseRecord, 'expiresAt' | 'until'>) =>
      leases.update(name, (now: Frozen<LeaseRecord>) => (now.holder === holder ? { ...now, ...next } : now));
    const renewal = setInterval(() => {
      change(newLease()).then(
        (now) => now?.holder === holder || lost.abort(),
        () => lost.abort(),
      );
    }, RENEWAL_MS).unref();
    try {
      await work(lost.signal);
      return true;
    } finally {
      clearInterval(renewal);
      // If this fails, the lease expires by itself.
      await change({ until: 0, expiresAt: LONG_AGO }).catch(() => undefined);
    }
  };
}

/**
 * Returns a function that takes over a lease left by a process whose clock was ahead. Such a lease would stay valid for
 * as long as that clock was wrong, perhaps a year; it is recognized by not being renewed.
 * @returns whether it was taken over.
 */
function takeoverOfAbandoned(
  leases: Collection<LeaseRecord>,
  clock: Clock,
): (lease: LeaseRecord) => Promise<boolean> {
  const seen = new Map<string, { held: Frozen<LeaseRecord>; at: number }>();
  return async (lease) => {
    const held = await leases.get(lease.id);
    // A lease with a plausible end expires by itself.
    if (held === undefined || held.until <= clock() + 2 * VALIDITY_SECONDS * 1000) return false;
    const before = seen.get(lease.id);
    if (before === undefined || !isDeepStrictEqual(before.held, held)) {
      seen.set(lease.id, { held, at: clock() });
      return false;
    }
    if (clock() - before.at < VALIDITY_SECONDS * 1000) return false;
    seen.delete(lease.id);
    const taken = await updateWithResult(leases, lease.id, (current) =>
      isDeepStrictEqual(current, held) ? { result: true, next: lease } : { result: false },
    );
    return taken === true;
  };
}
