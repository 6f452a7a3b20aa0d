// Work that must be done by one process at a time: who does it has a lease in the store, which ends soon after the process.
import { isDeepStrictEqual } from 'node:util';
import type { LeaseRecord } from '../records/leases.ts';
import type { Frozen } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { type Collection, type Store, UniqueKeyError } from './contract.ts';
import { updateWithResult } from './update-with-result.ts';

export interface Leases {
  /**
   * Does some work, unless somebody is at it.
   * @param name of the work.
   * @param work told by a signal when the lease was lost: it must then leave all as it is.
   * @returns whether it was done here. @throws what the work throws.
   */
  ifFree(name: string, work: (lost: AbortSignal) => Promise<void>): Promise<boolean>;
  /** The same, after whoever is at it. */
  afterOthers(name: string, work: (lost: AbortSignal) => Promise<void>): Promise<void>;
}

/** How long a lease is good, seconds, and how often it is renewed, milliseconds. */
const GOOD = 30;
const RENEWED = 10_000;
/** How often it is looked whether somebody is done, milliseconds. */
const LOOK = 100;

/** When a lease ended that was given back, by whichever clock, epoch seconds. */
const LONG_AGO = 1;
/** After its end one stays so long, unless it is given back, seconds: a clock that is less ahead than this does not hide it. */
const KEPT = 366 * 86_400;

/** Until when one is good, epoch milliseconds. */
const endOf = ({ until, expiresAt = 0 }: Frozen<LeaseRecord>) => until ?? expiresAt * 1000;

/** The leases of one process. A store that no other process can have open needs none of them in it. */
export function createLeases(deps: { store: Store; clock: Clock; random: Random }): Leases {
  const held = new Set<string>();
  const taken = deps.store.exclusive === true ? alone : shared(deps);
  const ifFree: Leases['ifFree'] = async (name, work) => {
    if (held.has(name)) return false;
    held.add(name);
    try {
      return await taken(name, work);
    } finally {
      held.delete(name);
    }
  };
  return {
    ifFree,
    afterOthers: async (name, work) => {
      while (!(await ifFree(name, work))) await new Promise((resolve) => setTimeout(resolve, LOOK));
    },
  };
}

const alone: Leases['ifFree'] = async (_name, work) => {
  await work(new AbortController().signal);
  return true;
};

function shared({
  store,
  clock: own,
  random,
}: {
  store: Store;
  clock: Clock;
  random: Random;
}): Leases['ifFree'] {
  const leases = store.collection('leases');
  const clock = store.sharedClock ?? own;
  const takeLeft = leftAhead(leases, clock);
  const take = async (lease: LeaseRecord): Promise<boolean> => {
    const free = await updateWithResult(leases, lease.id, (current) =>
      endOf(current) <= clock() ? { result: true, next: lease } : { result: false },
    );
    if (free !== undefined) return free || takeLeft(lease);
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
    const fresh = (): LeaseRecord => {
      const until = clock() + GOOD * 1000;
      return { id: name, holder, until, expiresAt: Math.ceil(until / 1000) + KEPT };
    };
    if (!(await take(fresh()))) return false;
    const lost = new AbortController();
    const change = (next: Pick<LeaseRecord, 'expiresAt' | 'until'>) =>
      leases.update(name, (now: Frozen<LeaseRecord>) => (now.holder === holder ? { ...now, ...next } : now));
    const renewal = setInterval(() => {
      change(fresh()).then(
        (now) => now?.holder === holder || lost.abort(),
        () => lost.abort(),
      );
    }, RENEWED).unref();
    try {
      await work(lost.signal);
      return true;
    } finally {
      clearInterval(renewal);
      // What cannot be given back ends by itself.
      await change({ until: 0, expiresAt: LONG_AGO }).catch(() => undefined);
    }
  };
}

/**
 * What takes a lease that a process has left whose clock was ahead: it is good for as long as that clock was wrong, a year perhaps,
 * and it is known by that nobody renews it.
 * @returns whether it was taken.
 */
function leftAhead(leases: Collection<LeaseRecord>, clock: Clock): (lease: LeaseRecord) => Promise<boolean> {
  const seen = new Map<string, { held: Frozen<LeaseRecord>; at: number }>();
  return async (lease) => {
    const held = await leases.get(lease.id);
    // Others end by themselves.
    if (held === undefined || endOf(held) <= clock() + 2 * GOOD * 1000) return false;
    const before = seen.get(lease.id);
    if (before === undefined || !isDeepStrictEqual(before.held, held)) {
      seen.set(lease.id, { held, at: clock() });
      return false;
    }
    if (clock() - before.at < GOOD * 1000) return false;
    seen.delete(lease.id);
    const taken = await updateWithResult(leases, lease.id, (current) =>
      isDeepStrictEqual(current, held) ? { result: true, next: lease } : { result: false },
    );
    return taken === true;
  };
}
