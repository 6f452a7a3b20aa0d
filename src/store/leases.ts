// Work that must be done by one process at a time: who does it has a lease in the store, which ends soon after the process.
import { isDeepStrictEqual } from 'node:util';
import type { LeaseRecord } from '../records/leases.ts';
import type { Frozen } from '../records/record.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { type Collection, type Store, UniqueKeyError } from './contract.ts';
import { judge } from './judge.ts';

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

function shared({ store, clock, random }: { store: Store; clock: Clock; random: Random }): Leases['ifFree'] {
  const leases = store.collection('leases');
  const takeLeft = leftAhead(leases, clock);
  const take = async (lease: LeaseRecord): Promise<boolean> => {
    try {
      // One that has ended is as if it were not there.
      await leases.insert(lease);
      return true;
    } catch (thrown) {
      if (thrown instanceof UniqueKeyError) return takeLeft(lease);
      throw thrown;
    }
  };
  return async (name, work) => {
    const holder = random(16).toString('base64url');
    const until = (seconds: number) => epochSeconds(clock) + seconds;
    if (!(await take({ id: name, holder, expiresAt: until(GOOD) }))) return false;
    const lost = new AbortController();
    const change = (expiresAt: number) =>
      leases.update(name, (now: Frozen<LeaseRecord>) =>
        now.holder === holder ? { ...now, expiresAt } : now,
      );
    const renewal = setInterval(() => {
      change(until(GOOD)).then(
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
      await change(LONG_AGO).catch(() => undefined);
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
    if (held === undefined || (held.expiresAt ?? 0) <= epochSeconds(clock) + 2 * GOOD) return false;
    const before = seen.get(lease.id);
    if (before === undefined || !isDeepStrictEqual(before.held, held)) {
      seen.set(lease.id, { held, at: clock() });
      return false;
    }
    if (clock() - before.at < GOOD * 1000) return false;
    seen.delete(lease.id);
    const taken = await judge(leases, lease.id, (current) =>
      isDeepStrictEqual(current, held) ? { verdict: true, next: lease } : { verdict: false },
    );
    return taken === true;
  };
}
