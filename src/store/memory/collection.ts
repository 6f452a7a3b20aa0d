// The methods of the contract over a table in memory. Each change is made in memory at once and resolves when it is
// durable. A record whose last change is not durable yet is returned only when it is, so that nobody acts on data that
// a failing disk may undo; a further change of it need not wait.

import type { Stored } from '../../records/base/record.ts';
import type { Collection, Query } from '../contract.ts';
import { checkQuery, comparator, defaultLimit, type IsReferenced, isInIdOrder, matches } from '../filter.ts';
import { type AnyRecord, encodeRecord, encodeUpdate } from '../record.ts';
import * as rows from './table.ts';

/** Makes a change durable; returns undefined when there is nothing to wait for. */
export type Commit = (change: rows.Change) => Promise<void> | undefined;

/** For a table without a database: checkQuery has refused filters by other collections before. */
const alone: IsReferenced = () => false;

/**
 * Returns the collection of a table. `check` is called at the start of each method and throws when the store is closed.
 */
export function createCollection(
  table: rows.Table,
  commit: Commit,
  check: () => void,
  isReferenced = alone,
): Collection<Stored> {
  /** The last change of each record that is not durable yet. */
  const pending = new Map<string, Promise<void>>();

  async function write(change: rows.Change): Promise<void> {
    const durable = commit(change);
    if (durable === undefined) return;
    const ids = change.put === undefined ? change.deleted : [...change.deleted, change.put.record.id];
    for (const id of ids) pending.set(id, durable);
    try {
      await durable;
    } finally {
      for (const id of ids) if (pending.get(id) === durable) pending.delete(id);
    }
  }

  /** Reads. If what was found is not durable yet, waits for it, and reads again if it was undone. */
  async function read<R>(find: () => R, idsOf: (result: R) => string[]): Promise<R> {
    const result = find();
    const waits = pending.size === 0 ? [] : idsOf(result).flatMap((id) => pending.get(id) ?? []);
    if (waits.length === 0) return result;
    const outcomes = await Promise.allSettled(waits);
    return outcomes.every(({ status }) => status === 'fulfilled') ? result : find();
  }

  async function remove(ids: string[]): Promise<void> {
    const change = rows.remove(table, ids);
    if (change.deleted.length > 0) await write(change);
  }

  return {
    async insert(record) {
      check();
      await write(rows.place(table, encodeRecord(record), true));
    },
    async put(record) {
      check();
      await write(rows.place(table, encodeRecord(record), false));
    },
    async get(id) {
      check();
      return read(
        () => rows.find(table, id),
        () => [id],
      );
    },
    async findBy(index, value) {
      check();
      return read(() => rows.findBy(table, index, value), idsOf);
    },
    async update(id, change) {
      check();
      const current = rows.find(table, id);
      if (current === undefined) return absent(id);
      const next = encodeUpdate(table.name, id, change(current));
      await write(rows.place(table, next, false));
      return next.record;
    },
    async upsert(id, change) {
      check();
      const next = encodeUpdate(table.name, id, change(rows.find(table, id)));
      await write(rows.place(table, next, false));
      return next.record;
    },
    async take(id) {
      check();
      const record = rows.find(table, id);
      if (record === undefined) return absent(id);
      await remove([id]);
      return record;
    },
    async delete(id) {
      check();
      if (rows.find(table, id) === undefined) {
        await pending.get(id);
        return false;
      }
      await remove([id]);
      return true;
    },
    async deleteBy(index, value) {
      check();
      const ids = idsOf(rows.findBy(table, index, value));
      await remove(ids);
      return ids.length;
    },
    async list(query = {}) {
      check();
      checkQuery(table.spec, query);
      const { records, more, total } = await read(
        () => pageOf(table, query, isReferenced),
        (found) => idsOf(found.records),
      );
      const next = more && isInIdOrder(query) ? records.at(-1)?.id : undefined;
      return {
        records,
        ...(next !== undefined && { next }),
        ...(query.total && { total }),
      };
    },
    async count() {
      check();
      return rows.count(table);
    },
  };

  /** The absence of a record, too, is reported only when its deletion is durable. */
  async function absent(id: string): Promise<undefined> {
    await pending.get(id);
    return undefined;
  }
}

function pageOf(table: rows.Table, query: Query, isReferenced: IsReferenced) {
  const { where, sort, after, page = 0, limit = defaultLimit, total } = query;
  if (where === undefined && sort === undefined && page === 0 && !total) {
    return { ...rows.page(table, after, limit), total: 0 };
  }
  const { records } = rows.page(table, undefined, Infinity);
  const found =
    where === undefined ? records : records.filter((one) => matches(table.spec, one, where, isReferenced));
  const rest = after === undefined ? found : found.filter(({ id }) => id > after);
  const sorted = rest.sort(comparator(table.spec, sort));
  const from = page * limit;
  return {
    records: sorted.slice(from, from + limit),
    more: sorted.length > from + limit,
    total: typeof total === 'number' ? Math.min(total, found.length) : found.length,
  };
}

function idsOf(records: AnyRecord[]): string[] {
  return records.map((record) => record.id);
}
