// Several writes as one transaction. Its rows are locked first, in one order for all, so that two batches wait for one
// another and neither is ended for the other; each change then is made of the row as it was locked.
import type { Stored } from '../../records/record.ts';
import type { Collection, Write } from '../contract.ts';
import { encodeRecord } from '../record.ts';
import type { StoredRow } from './postgres-gets.ts';
import { type Pool, type Run, stateOf } from './postgres-pool.ts';
import {
  type Access,
  encodeFor,
  forget,
  hasUniqueKeys,
  insert,
  type LockedRows,
  type PostgresTable,
  placeOf,
  put,
  write,
} from './postgres-table.ts';
import { idText } from './postgres-text.ts';

/** One write, with the row that it is about. */
interface PlannedWrite {
  table: PostgresTable;
  id: string;
  /** Whether the row is locked before: a new record needs none. */
  locks: boolean;
  /** In a transaction. */
  apply(access: Access): Promise<unknown>;
  /** As the only one. */
  alone(collection: Collection<Stored>): Promise<unknown>;
}

interface Batching {
  pool: Pool;
  tables: ReadonlyMap<string, PostgresTable>;
  collections: ReadonlyMap<string, Collection<Stored>>;
}

/** Makes all writes or none, in this order. @throws TypeError for what is no write; as the single writes do. */
export async function writeBatch(
  { pool, tables, collections }: Batching,
  writes: readonly Write[],
): Promise<void> {
  const planned = writes.map((one) => plan(tables, one));
  const [only, ...others] = planned;
  if (only === undefined) return;
  const collection = collections.get(only.table.name);
  // One statement is a transaction, too, and needs no other around it.
  if (others.length === 0 && collection !== undefined) {
    await only.alone(collection);
    return;
  }
  const inTurn = !areApart(planned);
  await pool.transaction(
    async (run, locked) => {
      const access: Access = { run, locked };
      if (!inTurn) return void (await allOf(planned.map(({ apply }) => apply(access))));
      for (const { apply } of planned) await apply(access);
    },
    (run: Run) => lockAll(run, planned),
  );
}

/** Whether no write can see what another does: then they need not wait for one another's answers. */
function areApart(planned: readonly PlannedWrite[]): boolean {
  const places = new Set(planned.map(({ table, id }) => placeOf(table, id)));
  return places.size === planned.length && planned.every(({ table }) => !hasUniqueKeys(table));
}

/** Waits for all, whatever becomes of one: nothing is asked any more when the transaction ends. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const failed = (await Promise.allSettled(work)).filter(({ status }) => status === 'rejected');
  const reasons = failed.map((one) => (one as PromiseRejectedResult).reason);
  if (reasons.length > 0) throw reasons.find((one) => stateOf(one) !== transactionAborted) ?? reasons[0];
  return Promise.all(work);
}

/** What is said of all that comes after the statement that failed. */
const transactionAborted = '25P02';

/** Locks the rows that are there, with one question. */
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

/** Few rows are locked by a statement each: for a list of them the database makes a plan anew each time. */
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
      write(access, table, id, (now) => now && encodeFor(table, id, make(now)));
    const alone = (collection: Collection<Stored>) => collection.update(id, (now) => make(now) as Stored);
    return { table, id, locks: true, apply, alone };
  }
  const isNew = 'insert' in one;
  const encoded = encodeRecord(isNew ? one.insert : one.put);
  const apply = (access: Access) => (isNew ? insert : put)(access, table, encoded);
  const alone = (collection: Collection<Stored>) =>
    isNew ? collection.insert(encoded.record as Stored) : collection.put(encoded.record as Stored);
  return { table, id: encoded.record.id, locks: !isNew, apply, alone };
}
