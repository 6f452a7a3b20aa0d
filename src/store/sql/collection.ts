// The methods of the contract over SQL. A write is decided at once and resolves when it is durable; a read returns what
// is committed, after waiting for the pending changes that concern it.

import type { Stored } from '../../records/base/record.ts';
import type { Collection, Page, Query } from '../contract.ts';
import { checkQuery, defaultLimit, isInIdOrder } from '../filter.ts';
import { type AnyRecord, encodeRecord, encodeUpdate, isUniqueKey } from '../record.ts';
import { type Change, find, idsBy, place, remove, type SqlTable } from './table.ts';
import type { Writer } from './writer.ts';

export interface Found {
  records: AnyRecord[];
  more: boolean;
  total: number | undefined;
  /** @see Page.isCut */
  isCut?: boolean | undefined;
}

/** Runs a query that may take long, on another thread. */
export type Search = (table: SqlTable, query: Query) => Promise<Found>;

interface SqlCollectionOptions {
  table: SqlTable;
  writer: Writer;
  search: Search;
  /** Called at the start of each method; throws when the store is closed. */
  check(): void;
}

export function createSqlCollection({
  table,
  writer,
  search,
  check,
}: SqlCollectionOptions): Collection<Stored> {
  const { committed, overlay, clock, collection } = table;
  const write = (plan: () => Change) => commitAll(writer, [plan]);
  const seconds = () => clock() / 1000;

  /** The absence of a record, too, is reported only when its deletion is durable. */
  async function absent(id: string): Promise<undefined> {
    await overlay.get(id)?.durable;
    return undefined;
  }

  return {
    async insert(record) {
      check();
      await write(() => place(table, encodeRecord(record), true));
    },
    async put(record) {
      check();
      await write(() => place(table, encodeRecord(record), false));
    },
    async get(id) {
      check();
      await settled(overlay.get(id)?.durable);
      const record = committed.get(id);
      return record?.expiresAt !== undefined && record.expiresAt <= seconds() ? undefined : record;
    },
    async findBy(index, value) {
      check();
      const unique = isUniqueKey(collection, index);
      const read = () => committed.find(unique, index, value, seconds());
      const records = read();
      if (overlay.size === 0) return records;
      const ids = [...records.map(({ id }) => id), ...overlay.idsBy(index, value)];
      const waits = new Set(ids.flatMap((id) => overlay.get(id)?.durable ?? []));
      if (waits.size === 0) return records;
      await Promise.allSettled(waits);
      return read();
    },
    async update(id, change) {
      check();
      const before = find(table, id);
      if (before === undefined) return absent(id);
      const next = encodeUpdate(collection.name, id, change(before));
      await write(() => place(table, next, false, before));
      return next.record;
    },
    async upsert(id, change) {
      check();
      const next = encodeUpdate(collection.name, id, change(find(table, id)));
      await write(() => place(table, next, false));
      return next.record;
    },
    async take(id) {
      check();
      const record = find(table, id);
      if (record === undefined) return absent(id);
      await write(() => remove(table, [id]));
      return record;
    },
    async delete(id) {
      check();
      if (find(table, id) === undefined) {
        await absent(id);
        return false;
      }
      await write(() => remove(table, [id]));
      return true;
    },
    async deleteBy(index, value) {
      check();
      const ids = idsBy(table, index, value);
      if (ids.length > 0) await write(() => remove(table, ids));
      return ids.length;
    },
    async list(query = {}) {
      check();
      checkQuery(collection.spec, query);
      await Promise.allSettled(overlay.waits());
      return pageOf(query, isPlain(query) ? plainPage(table, query) : await search(table, query));
    },
    async count() {
      check();
      await Promise.allSettled(overlay.waits());
      return committed.count(seconds());
    },
  };
}

/**
 * Plans writes one after another and commits them together; if one is refused, none is made.
 * @throws what a plan throws, or why the commit failed.
 */
export async function commitAll(writer: Writer, plans: (() => Change)[]): Promise<void> {
  const durable = writer.next();
  const changes: Change[] = [];
  const undo: (() => void)[] = [];
  try {
    for (const plan of plans) {
      const change = plan();
      changes.push(change);
      const { overlay } = change.table;
      for (const { id, encoded, slots } of change.after) {
        const before = overlay.get(id);
        undo.push(() => (before === undefined ? overlay.settle(id, durable) : overlay.set(id, before)));
        overlay.set(id, { encoded, slots, durable });
      }
    }
  } catch (error) {
    for (const step of undo.reverse()) step();
    throw error;
  }
  await writer.append(
    changes.flatMap(({ operations }) => operations),
    (isCommitted) => {
      for (const { table, after } of changes) {
        for (const { id, encoded } of after) {
          table.overlay.settle(id, durable);
          table.committed.changed(id, isCommitted ? encoded?.record : undefined);
        }
      }
    },
  );
}

async function settled(durable: Promise<void> | undefined): Promise<void> {
  if (durable !== undefined) await Promise.allSettled([durable]);
}

/** Converts a result to the page of the contract. */
export function pageOf(query: Query, { records, more, total, isCut }: Found): Page<AnyRecord> {
  const next = more && isInIdOrder(query) ? records.at(-1)?.id : undefined;
  return {
    records,
    ...(next !== undefined && { next }),
    ...(total !== undefined && { total }),
    ...(isCut === true && { isCut }),
  };
}

/** Returns whether a query only reads records in id order. */
const isPlain = (query: Query) => isInIdOrder(query) && query.where === undefined && !query.total;

function plainPage({ committed, clock }: SqlTable, { after = '', limit = defaultLimit }: Query): Found {
  const records = committed.page(after, limit + 1, clock() / 1000);
  const more = records.length > limit;
  return { records: more ? records.slice(0, limit) : records, more, total: undefined };
}
