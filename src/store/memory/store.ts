// A store in memory that ends with its process, for the tests of other projects.

import { isCached } from '../../records/base/collection-spec.ts';
import type { Stored } from '../../records/base/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Collection, Store, Write } from '../contract.ts';
import { collectionsIn } from '../contract.ts';
import type { IsReferenced } from '../filter.ts';
import { type AnyRecord, collectionSpecs, encodeRecord, encodeUpdate } from '../record.ts';
import { countWrites } from '../revision.ts';
import { type Commit, createCollection } from './collection.ts';
import { tablesSnapshot } from './memory-snapshot.ts';
import { createTable, find, findBy, place, remove, type Table } from './table.ts';

const noCommit: Commit = () => undefined;

/** @param clock decides whether a record has expired, in epoch milliseconds. */
export function openMemoryStore(clock: Clock): Store {
  let isClosed = false;
  let revision = 0;
  const check = () => {
    if (isClosed) throw new Error('the store is closed');
  };
  const count = () => {
    revision += 1;
  };
  const tables = new Map(collectionSpecs().map(([name, spec]) => [name, createTable(name, spec, clock)]));
  const isReferenced: IsReferenced = ({ of, index, equals }, id) => {
    const other = tables.get(of);
    return other !== undefined && findBy(other, index, `${equals}\n${id}`).length > 0;
  };
  const collections = new Map(
    [...tables].map(([name, table]): [string, Collection<Stored>] => {
      const collection = createCollection(table, noCommit, check, isReferenced);
      return [name, isCached(table.spec) ? countWrites(collection, count) : collection];
    }),
  );
  return {
    collection: collectionsIn(collections),
    revision: () => revision,
    async batch(writes) {
      check();
      const changes = writes.map((write) => plan(tables, write));
      try {
        applyAll(changes);
      } finally {
        if (changes.some(({ table }) => isCached(table.spec))) count();
      }
    },
    async compact() {
      check();
    },
    async withSnapshot(work) {
      check();
      const kept = [...tables.values()].filter(({ spec }) => spec.kept !== 'memory');
      return work(tablesSnapshot(kept, clock()));
    },
    async ready() {
      check();
    },
    async close() {
      isClosed = true;
    },
  };
}

interface PlannedWrite {
  table: Table;
  id: string;
  apply(): void;
}

/** Makes all changes or none. @throws what one of them throws. */
function applyAll(changes: readonly PlannedWrite[]): void {
  const before: [Table, string, AnyRecord | undefined][] = [];
  try {
    for (const { table, id, apply } of changes) {
      before.push([table, id, find(table, id)]);
      apply();
    }
  } catch (thrown) {
    for (const [table, id, record] of before.reverse()) {
      remove(table, [id]);
      if (record !== undefined) place(table, encodeRecord(record), false);
    }
    throw thrown;
  }
}

/**
 * Prepares one write of a batch; its record is checked before anything is changed.
 * @throws TypeError for an invalid write.
 */
function plan(tables: ReadonlyMap<string, Table>, write: Write): PlannedWrite {
  const table = tables.get(write.collection);
  if (table === undefined || table.spec.kept !== undefined) {
    throw new TypeError(`${write.collection} is no collection for a batch`);
  }
  if ('delete' in write) return { table, id: write.delete, apply: () => remove(table, [write.delete]) };
  if ('update' in write) {
    const make = write.change as (current: unknown) => unknown;
    return { table, id: write.update, apply: () => change(table, write.update, make) };
  }
  const mustBeNew = 'insert' in write;
  const encoded = encodeRecord(mustBeNew ? write.insert : write.put);
  return { table, id: encoded.record.id, apply: () => place(table, encoded, mustBeNew) };
}

function change(table: Table, id: string, make: (current: unknown) => unknown): void {
  const before = find(table, id);
  if (before === undefined) return;
  place(table, encodeUpdate(table.name, id, make(before)), false);
}
