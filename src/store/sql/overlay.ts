// The changes of a collection that are not durable yet. Writes take them into account; reads wait for them.
import type { Encoded } from '../record.ts';

/** The pending change of a record; `encoded` is undefined for a deletion. */
export interface Pending {
  encoded: Encoded | undefined;
  /** The values of the record's keys, as {@link slot} returns them. */
  slots: readonly string[];
  durable: Promise<void>;
}

export interface Overlay {
  get(id: string): Pending | undefined;
  set(id: string, pending: Pending): void;
  /** Removes a change, unless a later change of the same record has replaced it. */
  settle(id: string, durable: Promise<void>): void;
  /** Returns the ids of records that will have this value of a key. */
  idsBy(key: string, value: string): string[];
  /** Returns the promises of all pending changes. */
  waits(): Set<Promise<void>>;
  readonly size: number;
}

/** Returns an overlay without changes. */
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

/** Returns a key and a value as one text. */
export const slot = ([key, value]: readonly [key: string, value: string]) => `${key}\n${value}`;
