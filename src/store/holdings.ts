// The records of one kind that this process has written and that are still there, by the origin of who asked for them.
import type { Bound } from '../records/collection-spec.ts';
import type { Stored } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Requester } from '../runtime/requester.ts';
import { createShares } from '../runtime/shares.ts';

export interface Holdings {
  /** Notes that a record is written again. @returns whether it is held. */
  renew(record: Stored, isBegun: boolean): boolean;
  /** Adds a record. @returns the ids of those to delete for it; `refused` when it may not be added. */
  add(record: Stored, who: Requester, isBegun: boolean): string[] | 'refused';
  /** @returns whether it was held. */
  removed(id: string): boolean;
}

interface HoldingsOptions extends Pick<Bound<Stored>, 'max' | 'maxOfAddress' | 'whenFull'> {
  clock: Clock;
  /** Counts all records of the kind in the store, up to a number. */
  count(atMost: number): Promise<number>;
  /** Called at most once a minute when the bound is reached. @param network that of the latest requester. */
  onFull(network: string): void;
  onFault(error: unknown): void;
}

/** How often all records are counted, milliseconds. */
const COUNT_INTERVAL = 60_000;
/** How often expired records are looked for, at most, milliseconds. */
const SWEEP_INTERVAL = 1_000;
/** The part of a bound that is left to a process even where the records of others fill it. */
const MIN_PART = 0.1;
/** How many give way to one: more than one, so that a bound that has become smaller is reached. */
const MAX_EVICTED = 2;

/** Makes empty holdings. */
export function createHoldings(options: HoldingsOptions): Holdings {
  const { maxOfAddress = Number.POSITIVE_INFINITY, whenFull, clock } = options;
  const shares = createShares<string>();
  /** When each record expires, epoch seconds; of what the operators write, too, which has no share. */
  const ends = new Map<string, number>();
  const { room } = countedRoom(options, () => ends.size);
  let sweptAt = Number.NEGATIVE_INFINITY;
  const report = reportsOf(options);
  const removed = (id: string): boolean => {
    shares.delete(id);
    return ends.delete(id);
  };
  const sweep = (): void => {
    const now = clock();
    if (now - sweptAt < SWEEP_INTERVAL) return;
    sweptAt = now;
    for (const [id, end] of ends) if (end <= now / 1000) removed(id);
  };
  const isOver = ({ origin }: Requester) => shares.size() > room() || shares.ofAddress(origin) > maxOfAddress;
  const evict = (who: Requester): string[] => {
    const evicted: string[] = [];
    if (isOver(who)) sweep();
    while (isOver(who) && evicted.length < MAX_EVICTED) {
      const isOfAddress = shares.ofAddress(who.origin) > maxOfAddress;
      const oldest = isOfAddress ? shares.oldestOf(who.origin) : shares.toGiveUp('oldest');
      if (oldest === undefined) break;
      evicted.push(oldest);
      removed(oldest);
      if (!isOfAddress) report(who);
    }
    return evicted;
  };
  const mayHold = ({ origin }: Requester) => shares.mayHold(origin, room());
  return {
    renew: (record, isBegun) => {
      if (!ends.has(record.id)) return false;
      ends.set(record.id, record.expiresAt ?? Number.POSITIVE_INFINITY);
      if (isBegun) shares.keep(record.id);
      return true;
    },
    add: (record, who, isBegun) => {
      const { id, expiresAt = Number.POSITIVE_INFINITY } = record;
      if (who.standing !== 'trusted') {
        if (whenFull === 'refuse' && !mayHold(who)) {
          sweep();
          if (!mayHold(who)) {
            report(who);
            return 'refused';
          }
        }
        shares.add(id, who.origin);
        if (isBegun || who.standing === 'known') shares.keep(id);
      }
      ends.set(id, expiresAt);
      return whenFull === 'evict' && who.standing !== 'trusted' ? evict(who) : [];
    },
    removed,
  };
}

/** Returns a function that reports a full bound, at most once a minute. */
function reportsOf({ clock, onFull }: HoldingsOptions): (who: Requester) => void {
  let reportedAt = Number.NEGATIVE_INFINITY;
  return ({ origin }) => {
    if (clock() - reportedAt < COUNT_INTERVAL) return;
    reportedAt = clock();
    onFull(origin.network);
  };
}

/** Returns how many records this process may hold, beside what others have written. */
function countedRoom(
  { max, clock, count, onFault }: HoldingsOptions,
  held: () => number,
): { room(): number } {
  let ofOthers = 0;
  let countedAt = Number.NEGATIVE_INFINITY;
  const recount = async (): Promise<void> => {
    try {
      ofOthers = Math.max(0, (await count(max + held())) - held());
    } catch (error) {
      onFault(error);
    }
  };
  return {
    room: () => {
      // A process with few records is within its part, whatever others have written.
      if (held() < (max * MIN_PART) / 2) return max;
      const now = clock();
      if (now - countedAt >= COUNT_INTERVAL) {
        countedAt = now;
        void recount();
      }
      return Math.max(Math.ceil(max * MIN_PART), max - ofOthers);
    },
  };
}
