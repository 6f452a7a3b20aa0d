// Claims on deliveries. Each delivery is tried by at most one process at a time, which holds a lease that is longer
// than a try.
import type { CollectionName } from '../../records/collections.ts';
import type { DeliveryRecord } from '../../records/deliveries.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import { type Requester, requester } from '../../runtime/requester.ts';
import type { Filter, Store, Write } from '../../store/contract.ts';
import { updateWithResult } from '../../store/update-with-result.ts';

type Record = Frozen<DeliveryRecord>;

/** Added to the longest duration of a try, milliseconds: the clocks of two hosts differ, and a process may stall. */
const MARGIN = 15_000;

/**
 * No delivery is ever due later than this, milliseconds. One that seems to be was claimed by a process that has ended,
 * whose clock was ahead.
 */
const MAX_DUE_AHEAD = 3_600_000;

const dateOf = (at: number) => new Date(at).toISOString();

export const COLLECTION = 'deliveries' satisfies CollectionName;

/** A delivery that this process has claimed. */
export interface Claim {
  id: string;
  content: string;
  tries: number;
  /** When the lease ends, epoch milliseconds. */
  until: number;
  /** Who caused it. */
  from: Requester;
}

export interface Claims {
  /** Makes a new delivery, claimed by this process, and the write that stores it. */
  create(kind: string, content: string, maxDuration: number): { claim: Claim; write: Write };
  /**
   * Returns deliveries of some kinds that no process is working on, those that are due longest first.
   * @param isFirst whether this process has just started.
   */
  due(kinds: readonly string[], isFirst: boolean): Promise<readonly Record[]>;
  /** Claims a delivery. @returns undefined when another process was faster. */
  take(record: Record, longest: number): Promise<Claim | undefined>;
  /**
   * Extends the lease for another try.
   * @returns when it ends; undefined when another process has claimed the delivery meanwhile.
   */
  renew(id: string, longest: number): Promise<number | undefined>;
  /**
   * Gives the claim up; any process may take the delivery after so many milliseconds.
   * @param failed how many tries have failed since.
   */
  release(id: string, ms: number, failed: number): Promise<void>;
  /** Removes a delivery that its receiver has accepted, or that is given up. */
  remove(id: string): Promise<void>;
  count(): Promise<number>;
}

/** Makes the claims of one process. @param batchSize how many `due` returns at most. */
export function createClaims(
  { store, clock, random }: { store: Store; clock: Clock; random: Random },
  batchSize: number,
): Claims {
  const records = store.collection(COLLECTION);
  const holder = random(16).toString('base64url');
  /** Changes a delivery that this process has claimed. @returns the new record; undefined when the claim was lost. */
  const updateOwn = async (id: string, change: (current: Record) => Record): Promise<Record | undefined> => {
    const now = await records.update(id, (current) =>
      current.holder === holder ? change(current) : current,
    );
    return now?.holder === holder ? now : undefined;
  };
  return {
    create: (kind, content, maxDuration) => {
      const id = random(16).toString('hex');
      const until = clock() + maxDuration + MARGIN;
      const from = requester();
      const record = { id, kind, content, dueAt: dateOf(until), holder, tries: 0, from };
      return { claim: claimOf(record, until), write: { collection: COLLECTION, insert: record } };
    },
    due: async (kinds, isFirst) => {
      const kind = { field: 'kind', in: kinds };
      const find = async (where: Filter) =>
        (await records.list({ where, sort: { field: 'dueAt' }, limit: batchSize })).records;
      // No other process uses an exclusive store, so a process that has ended held these leases. Deliveries that this
      // process has just written are left out: it works on them already.
      if (isFirst && store.exclusive === true)
        return (await find(kind)).filter((one) => one.holder !== holder);
      const far = isFirst ? await find({ field: 'dueAt', from: dateOf(clock() + MAX_DUE_AHEAD) }) : [];
      const ours = far.filter((one) => kinds.includes(one.kind));
      return ours.length > 0 ? ours : find({ all: [{ field: 'dueAt', to: dateOf(clock()) }, kind] });
    },
    take: async ({ id, dueAt }, maxDuration) => {
      const until = clock() + maxDuration + MARGIN;
      const claimed = await updateWithResult(records, id, (current) =>
        current.dueAt === dueAt
          ? { result: current, next: { ...current, holder, dueAt: dateOf(until) } }
          : { result: undefined },
      );
      return claimed && claimOf(claimed, until);
    },
    renew: async (id, maxDuration) => {
      const until = clock() + maxDuration + MARGIN;
      return (await updateOwn(id, (current) => ({ ...current, dueAt: dateOf(until) }))) && until;
    },
    release: async (id, ms, failed) => {
      await updateOwn(id, (current) => ({
        ...current,
        dueAt: dateOf(clock() + ms),
        tries: current.tries + failed,
      }));
    },
    remove: async (id) => {
      await records.delete(id);
    },
    count: () => records.count(),
  };
}

function claimOf({ id, content, tries, from = requester() }: Record, until: number): Claim {
  return { id, content, tries, until, from };
}
