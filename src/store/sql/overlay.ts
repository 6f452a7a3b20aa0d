// The changes of a collection that are not durable yet. Writes are judged by them; reads wait for them.
import type { Encoded } from '../record.ts';

/** What becomes of a record; none when it is deleted. */
export interface Pending {
  encoded: Encoded | undefined;
  /** The record's keys, each as {@link slot} has it. */
  slots: readonly string[];
  durable: Promise<void>;
}

export interface Overlay {
  get(id: string): Pending | undefined;
  set(id: string, pending: Pending): void;
  /** Forgets a change unless a later one of the same record has replaced it. */
  settle(id: string, durable: Promise<void>): void;
  /** The ids of records that will have this value of a key. */
  idsBy(key: string, value: string): string[];
  /** What all changes wait for. */
  waits(): Set<Promise<void>>;
  readonly size: number;
}

/** Without a change. */
export function createOverlay(): Overlay {
  const changes = new Map<string, Pending>();
  const ids = new Map<string, Set<string>>();

  function forget(id: string): void {
    for (const at of changes.get(id)?.slots ?? []) {
      const sharing = ids.get(at);
      sharing?.delete(id);
      if (sharing?.size === 0) ids.delete(at);
    }
    changes.delete(id);
  }

  return {
    get: (id) => changes.get(id),
    set(id, pending) {
      forget(id);
      changes.set(id, pending);
      for (const at of pending.slots) {
        const sharing = ids.get(at);
        if (sharing === undefined) ids.set(at, new Set([id]));
        else sharing.add(id);
      }
    },
    settle(id, durable) {
      if (changes.get(id)?.durable === durable) forget(id);
    },
    idsBy: (key, value) => [...(ids.get(slot([key, value])) ?? [])],
    waits: () => new Set([...changes.values()].map(({ durable }) => durable)),
    get size() {
      return changes.size;
    },
  };
}

/** A value of a key, as one text. */
export const slot = ([key, value]: readonly [key: string, value: string]) => `${key}\n${value}`;
