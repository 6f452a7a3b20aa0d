// Bounds what waits for users who may never come, such as requested login pages: for each address and in all, so that
// strangers cannot fill the memory.
import type { Clock } from '../runtime/clock.ts';
import { addressKey } from './addresses.ts';

export interface WaitingLimits {
  /** Entries in all. */
  most: number;
  /** Entries of an address (IPv6: of a /64). */
  mostOfAddress: number;
  /** Lifetime of an entry, seconds. */
  ttlSeconds: number;
}

export interface WaitingList {
  /**
   * Adds an entry; a known one keeps its place.
   * @param address where it came from; undefined when unknown.
   * @returns the entries to evict: the oldest unanswered one, or without such the oldest.
   */
  add(id: string, address: string | undefined): string[];
  /** Marks an entry whose user has proved something: it is evicted after unanswered ones. */
  answered(id: string): void;
  /** Removes an entry. */
  done(id: string): void;
}

/** Ids in order of arrival. */
interface Queue {
  unanswered: Set<string>;
  answered: Set<string>;
}

/** An empty list, kept in this process; after a restart the entries expire by themselves. */
export function createWaitingList(limits: WaitingLimits, clock: Clock): WaitingList {
  const entries = new Map<string, { address: string | undefined; endsAt: number }>();
  const all = emptyQueue();
  const ofAddress = new Map<string, Queue>();

  const queuesOf = (address: string | undefined): Queue[] => {
    if (address === undefined) return [all];
    const queue = ofAddress.get(address) ?? emptyQueue();
    ofAddress.set(address, queue);
    return [all, queue];
  };
  const done = (id: string): void => {
    const entry = entries.get(id);
    if (entry === undefined) return;
    entries.delete(id);
    for (const queue of queuesOf(entry.address)) {
      queue.unanswered.delete(id);
      queue.answered.delete(id);
    }
    if (entry.address !== undefined && sizeOf(ofAddress.get(entry.address)) === 0) {
      ofAddress.delete(entry.address);
    }
  };
  const forgetEnded = (now: number): void => {
    for (const [id, { endsAt }] of entries) {
      if (endsAt > now) return;
      done(id);
    }
  };
  /** Evicts one entry at most: the list grows by one at a time. */
  const evict = (queue: Queue, most: number): string[] => {
    if (sizeOf(queue) <= most) return [];
    // The new entry, the last unanswered one, is never evicted itself.
    const [oldest] = queue.unanswered.size > 1 ? queue.unanswered : queue.answered;
    if (oldest === undefined) return [];
    done(oldest);
    return [oldest];
  };

  return {
    add: (id, ip) => {
      if (entries.has(id)) return [];
      const now = clock();
      forgetEnded(now);
      const address = ip === undefined ? undefined : addressKey(ip);
      entries.set(id, { address, endsAt: now + limits.ttlSeconds * 1000 });
      const [, own] = queuesOf(address);
      for (const queue of queuesOf(address)) queue.unanswered.add(id);
      return [...(own === undefined ? [] : evict(own, limits.mostOfAddress)), ...evict(all, limits.most)];
    },
    answered: (id) => {
      for (const queue of queuesOf(entries.get(id)?.address)) {
        if (queue.unanswered.delete(id)) queue.answered.add(id);
      }
    },
    done,
  };
}

function emptyQueue(): Queue {
  return { unanswered: new Set(), answered: new Set() };
}

function sizeOf(queue: Queue | undefined): number {
  return queue === undefined ? 0 : queue.unanswered.size + queue.answered.size;
}
