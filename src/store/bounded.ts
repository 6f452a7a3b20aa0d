// Bounds what strangers can make a store keep, as the collections declare it (src/records/base/collection-spec.ts). Beyond a bound, whoever
// has most gives way, first by network and then by address (runtime/shares.ts).
//
// Each process knows the origin of what it has written itself. What others have written, or this one before its last
// start, is counted once a minute, where this one holds much itself, and leaves less room; a tenth of each bound stays for
// every process.
// docs/understand/decisions/passwords-protection.md#the-bounds-on-what-strangers-make-gatehouse-keep-are-approximate-with-several-processes
import type { Logger } from 'pino';
import { AuthError, serverBusy } from '../http/errors.ts';
import type { Bound } from '../records/base/collection-spec.ts';
import type { Stored } from '../records/base/record.ts';
import type { CollectionName } from '../records/collections.ts';
import { boundOf } from '../records/collections.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Requester, requester } from '../runtime/requester.ts';
import { createShares } from '../runtime/shares.ts';
import type { Collection, Store, Write } from './contract.ts';
import { collectionByName, collectionsIn } from './contract.ts';
import { collectionSpecs } from './record.ts';

interface BoundedOptions {
  clock: Clock;
  log?: Pick<Logger, 'warn' | 'error'> | undefined;
  /** Multiplies all bounds, for tests. */
  scale?: number | undefined;
}

export function boundedStore(store: Store, { clock, log, scale = 1 }: BoundedOptions): Store {
  const guards = new Map<string, Guard>();
  const collections = new Map<string, object>();
  for (const [name, { writtenFor }] of collectionSpecs()) {
    const inner = collectionByName(store, name as CollectionName);
    if (typeof writtenFor !== 'object' || !('strangers' in writtenFor)) {
      collections.set(name, inner);
      continue;
    }
    const guard = createGuard(inner, { name, bounds: writtenFor.strangers, clock, log, scale });
    guards.set(name, guard);
    collections.set(name, guarded(inner, guard));
  }
  return {
    ...store,
    collection: collectionsIn(collections),
    batch: async (writes) => {
      const evicted = writes.flatMap((write) => guardWrite(guards.get(write.collection), write));
      await store.batch(writes);
      for (const write of writes) if ('delete' in write) guards.get(write.collection)?.removed(write.delete);
      await Promise.all(evicted.map((evict) => evict()));
    },
  };
}

/** Admits what is written to one collection. */
interface Guard {
  /**
   * Counts a record that is about to be written.
   * @returns what is left to do when it is written.
   * @throws AuthError 400 for a record that is too long, 503 for one that may not be kept.
   */
  admit(record: Stored): () => Promise<void>;
  /** Counts a record that has changed, maybe to another kind. @returns as {@link admit}. */
  changed(record: Stored): () => Promise<void>;
  removed(id: string): unknown;
}

const NOTHING_TO_DO = async (): Promise<void> => undefined;

function guardWrite(guard: Guard | undefined, write: Write): (() => Promise<void>)[] {
  if (guard === undefined) return [];
  if ('insert' in write) return [guard.admit(write.insert as Stored)];
  return 'put' in write ? [guard.admit(write.put as Stored)] : [];
}

interface GuardOptions extends Pick<BoundedOptions, 'clock'> {
  scale: number;
  name: string;
  bounds: readonly Bound<Stored>[];
  log: BoundedOptions['log'];
}

function holdingsByKind(inner: Collection<Stored>, { name, bounds, clock, log, scale }: GuardOptions) {
  const byKind = new Map<string, Holdings>();
  const make = (kind: string, bound: Bound<Stored>): Holdings =>
    createHoldings({
      ...bound,
      max: Math.ceil(bound.max * scale),
      ...(bound.maxOfAddress !== undefined && { maxOfAddress: Math.ceil(bound.maxOfAddress * scale) }),
      clock,
      // A whole collection has no index for its only kind.
      count: async (atMost: number) => {
        const where = bounds.length === 1 ? {} : { where: { index: 'kind', equals: kind } };
        return (await inner.list({ ...where, limit: 0, total: atMost })).total ?? 0;
      },
      onFull: (network) =>
        log?.warn({ collection: name, kind, network, action: bound.whenFull }, 'too much of a kind is kept'),
      onFault: (err) => log?.error({ err, collection: name }, 'what is kept could not be counted'),
    });
  return {
    of: (kind: string, bound: Bound<Stored>): Holdings => {
      const holdings = byKind.get(kind) ?? make(kind, bound);
      byKind.set(kind, holdings);
      return holdings;
    },
    removed: (id: string): boolean => [...byKind.values()].some((holdings) => holdings.removed(id)),
  };
}

function createGuard(inner: Collection<Stored>, options: GuardOptions): Guard {
  const { name, bounds } = options;
  const { of: holdingsOf, removed } = holdingsByKind(inner, options);
  /** @param mayBeNew whether a record that is not held is one that this process has not written. */
  const hold = (record: Stored, mayBeNew: boolean): (() => Promise<void>) => {
    const found = boundOf(bounds, record);
    if (found === undefined) {
      removed(record.id);
      return NOTHING_TO_DO;
    }
    const { bound, kind } = found;
    const holdings = holdingsOf(kind, bound);
    const isBegun = bound.isBegun?.(record) === true;
    if (holdings.renew(record, isBegun)) return NOTHING_TO_DO;
    const isMoved = removed(record.id);
    if (!isMoved && !mayBeNew) return NOTHING_TO_DO;
    if (!isMoved && JSON.stringify(record).length > bound.maxLength)
      throw new AuthError(400, 'invalid_request', 'The request is too long.');
    const evicted = holdings.add(record, requester(), isBegun);
    if (evicted === 'refused')
      throw serverBusy(undefined, new Error(`${name}: too many of the kind ${kind} from this network`));
    if (evicted.length === 0) return NOTHING_TO_DO;
    return async () => void (await Promise.all(evicted.map((id) => inner.delete(id))));
  };
  return {
    admit: (record) => hold(record, true),
    changed: (record) => hold(record, false),
    removed,
  };
}

function guarded(inner: Collection<Stored>, guard: Guard): Collection<Stored> {
  const admitted = async (record: Stored, write: () => Promise<void>): Promise<void> => {
    const evict = guard.admit(record);
    await write();
    await evict();
  };
  return {
    ...inner,
    insert: (record) => admitted(record as Stored, () => inner.insert(record)),
    put: (record) => admitted(record as Stored, () => inner.put(record)),
    upsert: async (id, change) => {
      let evict = NOTHING_TO_DO;
      const written = await inner.upsert(id, (current) => {
        const next = change(current);
        if (current === undefined) evict = guard.admit(next as Stored);
        return next;
      });
      await evict();
      return written;
    },
    update: async (id, change) => {
      const written = await inner.update(id, change);
      if (written !== undefined) await guard.changed(written as Stored)();
      return written;
    },
    take: async (id) => {
      const taken = await inner.take(id);
      guard.removed(id);
      return taken;
    },
    delete: async (id) => {
      const isDeleted = await inner.delete(id);
      guard.removed(id);
      return isDeleted;
    },
  };
}

// The records of one kind that this process has written and that are still there, by the origin of who asked for them.

interface Holdings {
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
function createHoldings(options: HoldingsOptions): Holdings {
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
