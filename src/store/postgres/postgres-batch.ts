// Several writes in one transaction. Their rows are locked first, in an order that is the same for all batches, so that
// two batches wait for one another instead of deadlocking. Each change is then made to the row as it was locked.
import type { Stored } from '../../records/base/record.ts';
import type { Collection, Write } from '../contract.ts';
import { type Encoded, encodeRecord, encodeUpdate } from '../record.ts';
import { idText } from '../sql/postgres-text.ts';
import type { StoredRow } from './postgres-batched-reads.ts';
import { type Pool, type Run, stateOf } from './postgres-pool.ts';
import {
  type Access,
  forget,
  hasUniqueKeys,
  insert,
  insertMany,
  type LockedRows,
  type PostgresTable,
  placeOf,
  put,
  write,
} from './postgres-table.ts';

/** One write and the row that it concerns. */
interface PlannedWrite {
  table: PostgresTable;
  id: string;
  /** Whether the row is locked first; a new record needs no lock. */
  locks: boolean;
  /** The record of a write that may add one. */
  encoded?: Encoded;
  /** Makes the write within a transaction. */
  apply(access: Access): Promise<unknown>;
  /** Makes the write on its own. */
  alone(collection: Collection<Stored>): Promise<unknown>;
}

interface Batching {
  pool: Pool;
  tables: ReadonlyMap<string, PostgresTable>;
  collections: ReadonlyMap<string, Collection<Stored>>;
}

/**
 * Makes all writes, in this order, or none.
 * @throws TypeError for an invalid write; otherwise as the single writes do.
 */
export async function writeBatch(
  { pool, tables, collections }: Batching,
  writes: readonly Write[],
): Promise<void> {
  const planned = writes.map((one) => plan(tables, one));
  const [only, ...others] = planned;
  if (only === undefined) return;
  const collection = collections.get(only.table.name);
  // A single statement is atomic by itself and needs no explicit transaction.
  if (others.length === 0 && collection !== undefined) {
    await only.alone(collection);
    return;
  }
  await pool.transaction(
    async (run, locked) => {
      const access: Access = { run, locked };
      const news = planned.filter((one) => isNew(one, locked));
      if (areApart(planned, news)) await applyApart(access, planned, news);
      else for (const { apply } of planned) await apply(access);
    },
    (run: Run) => lockAll(run, planned),
  );
}

const isNew = ({ table, id, locks, encoded }: PlannedWrite, locked: LockedRows) =>
  encoded !== undefined && (!locks || locked.get(placeOf(table, id)) === undefined);

/**
 * Returns whether the writes are independent, so that they can be sent without waiting for one another. New records are, also
 * where keys are unique: none of them frees a key that another needs.
 */
function areApart(planned: readonly PlannedWrite[], news: readonly PlannedWrite[]): boolean {
  const places = new Set(planned.map(({ table, id }) => placeOf(table, id)));
  const isUnique = ({ table }: PlannedWrite) => hasUniqueKeys(table);
  return places.size === planned.length && planned.filter(isUnique).length === news.filter(isUnique).length;
}

/** Makes independent writes; of each collection the new records together, in place of the first. */
async function applyApart(
  access: Access,
  planned: readonly PlannedWrite[],
  news: readonly PlannedWrite[],
): Promise<void> {
  const added = Map.groupBy(news, ({ table }) => table);
  const of = new Map([...added.values()].flatMap((all) => all.map((one) => [one, all] as const)));
  const work = planned.flatMap((one) => {
    const together = of.get(one) ?? [one];
    if (together.length === 1) return one.apply(access);
    return together[0] === one ? addAll(access, one.table, together) : [];
  });
  await allOf(work);
}

/** Adds new records, those by themselves that meet another record. */
async function addAll(access: Access, table: PostgresTable, added: readonly PlannedWrite[]): Promise<void> {
  for (let at = 0; at < added.length; at += addedAtOnce) {
    const some = added.slice(at, at + addedAtOnce);
    const rest = new Set(
      await insertMany(
        access,
        table,
        some.flatMap(({ encoded }) => encoded ?? []),
      ),
    );
    for (const one of some) if (one.encoded !== undefined && rest.has(one.encoded)) await one.apply(access);
  }
}

/** Few enough that the statement ends within its time limit. */
const addedAtOnce = 200;

/** Waits for all, even if one fails: no statement may be under way when the transaction ends. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const failed = (await Promise.allSettled(work)).filter(({ status }) => status === 'rejected');
  const reasons = failed.map((one) => (one as PromiseRejectedResult).reason);
  if (reasons.length > 0) throw reasons.find((one) => stateOf(one) !== transactionAborted) ?? reasons[0];
  return Promise.all(work);
}

/** The SQLSTATE of statements after the one that failed. */
const transactionAborted = '25P02';

/** Locks the existing rows of all writes, sending all statements at once. */
async function lockAll(run: Run, planned: readonly PlannedWrite[]): Promise<LockedRows> {
  const byTable = new Map<PostgresTable, Set<string>>();
  for (const { table, id, locks } of planned)
    if (locks) byTable.set(table, (byTable.get(table) ?? new Set()).add(id));
  const locked: LockedRows = new Map();
  const asked = [...byTable]
    .sort(([a], [b]) => (a.name < b.name ? -1 : 1))
    .map(async ([table, ids]) => {
      for (const id of ids) locked.set(placeOf(table, id), undefined);
      for (const row of await lock(run, table, [...ids].map(idText)))
        locked.set(`${table.name}\n${row[0]}`, row);
    });
  await allOf(asked);
  return locked;
}

// docs/understand/decisions/store.md#a-batch-in-postgresql-locks-its-rows-first-by-collection-and-id
/** A few rows are locked by one statement each, because the database plans a statement with a list anew each time. */
async function lock(run: Run, { statements }: PostgresTable, ids: readonly string[]): Promise<StoredRow[]> {
  if (ids.length > few) return (await run(statements.getAllLocked, [ids])).rows;
  const found = await allOf(ids.toSorted().map((id) => run(statements.getLocked, [id])));
  return found.flatMap(({ rows }) => rows);
}

const few = 3;

function plan(tables: ReadonlyMap<string, PostgresTable>, one: Write): PlannedWrite {
  const table = tables.get(one.collection);
  if (table === undefined || table.spec.kept !== undefined) {
    throw new TypeError(`${one.collection} is no collection for a batch`);
  }
  if ('delete' in one) {
    const { delete: id } = one;
    const apply = async (access: Access) => {
      forget(access, table, id);
      await access.run(table.statements.take, [idText(id), table.clock() / 1000]);
    };
    return { table, id, locks: true, apply, alone: (collection) => collection.delete(id) };
  }
  if ('update' in one) {
    const { update: id } = one;
    const make = one.change as (current: unknown) => unknown;
    const apply = (access: Access) =>
      write(access, table, id, (now) => now && encodeUpdate(table.name, id, make(now)));
    const alone = (collection: Collection<Stored>) => collection.update(id, (now) => make(now) as Stored);
    return { table, id, locks: true, apply, alone };
  }
  const isNew = 'insert' in one;
  const encoded = encodeRecord(isNew ? one.insert : one.put);
  const apply = (access: Access) => (isNew ? insert : put)(access, table, encoded);
  const alone = (collection: Collection<Stored>) =>
    isNew ? collection.insert(encoded.record as Stored) : collection.put(encoded.record as Stored);
  return { table, id: encoded.record.id, locks: !isNew, encoded, apply, alone };
}
