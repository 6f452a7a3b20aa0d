// Who may try a delivery: each is at most one process's at a time, by a lease that is longer than a try.
import type { CollectionName } from '../records/collections.ts';
import type { DeliveryRecord } from '../records/deliveries.ts';
import type { Frozen } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Filter, Store, Write } from '../store/contract.ts';
import { updateWithResult } from '../store/update-with-result.ts';

type Record = Frozen<DeliveryRecord>;

/** What is added to the longest time that a try takes: the clocks of two hosts differ, and a process may stall. */
const MARGIN = 15_000;

/** Later than this, milliseconds, nothing is ever due: a clock that was ahead said so, of a process that has ended. */
const FAR = 3_600_000;

const dateOf = (at: number) => new Date(at).toISOString();

export const COLLECTION = 'deliveries' satisfies CollectionName;

/** A delivery that this process has taken. */
export interface Claim {
  id: string;
  content: string;
  tries: number;
  /** Epoch milliseconds until when it is ours. */
  until: number;
}

export interface Claims {
  /** A new delivery, taken by this process from the start, and the write that keeps it. */
  create(kind: string, content: string, longest: number): { claim: Claim; write: Write };
  /** Those of some kinds that nobody is at, the longest due first. @param isFirst whether this process has just begun. */
  due(kinds: readonly string[], isFirst: boolean): Promise<readonly Record[]>;
  /** Takes one. @returns undefined when another process was faster. */
  take(record: Record, longest: number): Promise<Claim | undefined>;
  /** Makes room for a try. @returns until when it is ours; undefined when another process has taken it meanwhile. */
  renew(id: string, longest: number): Promise<number | undefined>;
  /** Leaves it to whoever comes first, in so many milliseconds. @param failed how many tries have failed since. */
  release(id: string, ms: number, failed: number): Promise<void>;
  /** It has been taken by its receiver, or is given up. */
  remove(id: string): Promise<void>;
  count(): Promise<number>;
}

/** The claims of one process. @param atOnce how many are asked for at a time. */
export function createClaims(
  { store, clock, random }: { store: Store; clock: Clock; random: Random },
  atOnce: number,
): Claims {
  const records = store.collection(COLLECTION);
  const holder = random(16).toString('base64url');
  /** Changes one that is ours. @returns what it is now; undefined when it is ours no more. */
  const own = async (id: string, change: (current: Record) => Record): Promise<Record | undefined> => {
    const now = await records.update(id, (current) =>
      current.holder === holder ? change(current) : current,
    );
    return now?.holder === holder ? now : undefined;
  };
  return {
    create: (kind, content, longest) => {
      const id = random(16).toString('hex');
      const until = clock() + longest + MARGIN;
      const record = { id, kind, content, dueAt: dateOf(until), holder, tries: 0 };
      return { claim: { id, content, tries: 0, until }, write: { collection: COLLECTION, insert: record } };
    },
    due: async (kinds, isFirst) => {
      const kind = { field: 'kind', in: kinds };
      const find = async (where: Filter) =>
        (await records.list({ where, sort: { field: 'dueAt' }, limit: atOnce })).records;
      // No other process has the store: what is held in it was held by one that has ended. What this one has just written it
      // is about to begin with itself.
      if (isFirst && store.exclusive === true)
        return (await find(kind)).filter((one) => one.holder !== holder);
      const far = isFirst ? await find({ field: 'dueAt', from: dateOf(clock() + FAR) }) : [];
      const ours = far.filter((one) => kinds.includes(one.kind));
      return ours.length > 0 ? ours : find({ all: [{ field: 'dueAt', to: dateOf(clock()) }, kind] });
    },
    take: async ({ id, dueAt }, longest) => {
      const until = clock() + longest + MARGIN;
      const taken = await updateWithResult(records, id, (current) =>
        current.dueAt === dueAt
          ? { result: current, next: { ...current, holder, dueAt: dateOf(until) } }
          : { result: undefined },
      );
      return taken && { id, content: taken.content, tries: taken.tries, until };
    },
    renew: async (id, longest) => {
      const until = clock() + longest + MARGIN;
      return (await own(id, (current) => ({ ...current, dueAt: dateOf(until) }))) && until;
    },
    release: async (id, ms, failed) => {
      await own(id, (current) => ({
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
