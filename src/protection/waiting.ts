// What waits for somebody who may never come, such as a login page that was asked for: so many at most, from one
// address and in all, or a stranger would fill the memory with them.
import type { Clock } from '../runtime/clock.ts';
import { addressKey } from './addresses.ts';

export interface WaitingLimits {
  /** The most that wait in all. */
  most: number;
  /** The most of one address (an IPv6 address counts by its /64). */
  mostOfAddress: number;
  /** After so many seconds they are gone anyway. */
  ttlSeconds: number;
}

export interface WaitingList {
  /**
   * Notes that something waits; what is noted already stays where it is.
   * @param address where it was asked for; none where that is not known any more.
   * @returns what has to go for it: the oldest other that nobody has begun to answer, and only
   *   without such the oldest.
   */
  add(id: string, address: string | undefined): string[];
  /** Somebody has begun to answer it, and has proved something: it goes after those that nobody answers. */
  answered(id: string): void;
  /** It waits no more. */
  done(id: string): void;
}

/** Ids in the order in which they came. */
interface Queue {
  unanswered: Set<string>;
  answered: Set<string>;
}

/** An empty list. It is of one process and forgotten with it; what it lists ends by its own lifetime then. */
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
  /** One is enough: a list that was full has become longer by one. */
  const evict = (queue: Queue, most: number): string[] => {
    if (sizeOf(queue) <= most) return [];
    // The newest is the last of the unanswered, and never makes room for itself.
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
