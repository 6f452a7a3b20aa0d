// Bounds what waits for users who may never come, such as requested login pages: for each address and in total, so
// that strangers cannot fill the memory.
import type { Clock } from '../runtime/clock.ts';
import { addressKey } from './addresses.ts';

interface WaitingLimits {
  /** How many entries there may be in total. */
  max: number;
  /** How many entries an address may have (IPv6: a /64). */
  maxOfAddress: number;
  /** Lifetime of an entry, seconds. */
  ttlSeconds: number;
}

export interface WaitingList {
  /**
   * Adds an entry. A known one keeps its place.
   * @param address where it came from; undefined when unknown.
   * @returns the entries to evict: the oldest unanswered one, or the oldest if there is none.
   */
  add(id: string, address: string | undefined): string[];
  /** Marks an entry whose user has proved something. It is evicted after unanswered ones. */
  answered(id: string): void;
  /** Removes an entry. */
  done(id: string): void;
}

/** Ids in order of arrival. */
interface Queue {
  unanswered: Set<string>;
  answered: Set<string>;
}

/** Returns an empty list, kept in this process. After a restart the entries expire by themselves. */
export function createWaitingList(limits: WaitingLimits, clock: Clock): WaitingList {
  const entries = new Map<string, { address: string | undefined; endsAt: number }>();
  const queues = createQueues();
  const done = (id: string): void => {
    const entry = entries.get(id);
    if (entry === undefined) return;
    entries.delete(id);
    queues.remove(id, entry.address);
  };
  const removeExpired = (now: number): void => {
    for (const [id, { endsAt }] of entries) {
      if (endsAt > now) return;
      done(id);
    }
  };
  const evict = (queue: Queue | undefined, max: number): string[] => {
    const oldest = oldestBeyond(queue, max);
    if (oldest === undefined) return [];
    done(oldest);
    return [oldest];
  };

  return {
    add: (id, ip) => {
      if (entries.has(id)) return [];
      const now = clock();
      removeExpired(now);
      const address = ip === undefined ? undefined : addressKey(ip);
      entries.set(id, { address, endsAt: now + limits.ttlSeconds * 1000 });
      const [all, ofAddress] = queues.of(address);
      for (const queue of queues.of(address)) queue.unanswered.add(id);
      return [...evict(ofAddress, limits.maxOfAddress), ...evict(all, limits.max)];
    },
    answered: (id) => {
      for (const queue of queues.of(entries.get(id)?.address)) {
        if (queue.unanswered.delete(id)) queue.answered.add(id);
      }
    },
    done,
  };
}

/** Returns the queue of all entries, and one for each address that has any. */
function createQueues() {
  const all: Queue = { unanswered: new Set(), answered: new Set() };
  const ofAddress = new Map<string, Queue>();
  const of = (address: string | undefined): [Queue, ...Queue[]] => {
    if (address === undefined) return [all];
    const queue = ofAddress.get(address) ?? { unanswered: new Set(), answered: new Set() };
    ofAddress.set(address, queue);
    return [all, queue];
  };
  return {
    of,
    remove: (id: string, address: string | undefined): void => {
      for (const queue of of(address)) {
        queue.unanswered.delete(id);
        queue.answered.delete(id);
      }
      const queue = address === undefined ? undefined : ofAddress.get(address);
      if (address !== undefined && queue !== undefined && sizeOf(queue) === 0) ofAddress.delete(address);
    },
  };
}

/**
 * Returns the entry to evict from a queue: the oldest unanswered one, or the oldest if there is none. One is
 * enough, because a list grows by one at a time. The new entry, the last unanswered one, is never evicted itself.
 * @returns undefined when the queue has no more than `max`.
 */
function oldestBeyond(queue: Queue | undefined, max: number): string | undefined {
  if (queue === undefined || sizeOf(queue) <= max) return undefined;
  const [oldest] = queue.unanswered.size > 1 ? queue.unanswered : queue.answered;
  return oldest;
}

function sizeOf({ unanswered, answered }: Queue): number {
  return unanswered.size + answered.size;
}
