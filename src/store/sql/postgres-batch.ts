// Several writes as one transaction. Its rows are locked first, in one order for all, so that two batches wait for one
// another and neither is ended for the other; each change then is made of the row as it was locked.
import type { Write } from '../contract.ts';
import { encodeRecord } from '../record.ts';
import type { Pool, Run } from './postgres-pool.ts';
import {
  type Access,
  encodeFor,
  forget,
  insert,
  type LockedRows,
  type PostgresTable,
  placeOf,
  put,
  write,
} from './postgres-table.ts';
import { idText } from './postgres-text.ts';

/** One write, with the row that it is about. */
interface Judged {
  table: PostgresTable;
  id: string;
  apply(access: Access): Promise<unknown>;
}

/** Makes all writes or none, in this order. @throws TypeError for what is no write; as the single writes do. */
export async function writeBatch(
  pool: Pool,
  tables: ReadonlyMap<string, PostgresTable>,
  writes: readonly Write[],
): Promise<void> {
  const judged = writes.map((one) => judge(tables, one));
  await pool.transaction(async (run) => {
    const access: Access = { run, locked: await lockAll(run, judged) };
    for (const { apply } of judged) await apply(access);
  });
}

/** Locks the rows that are there. */
async function lockAll(run: Run, judged: readonly Judged[]): Promise<LockedRows> {
  const byTable = new Map<PostgresTable, Set<string>>();
  for (const { table, id } of judged) byTable.set(table, (byTable.get(table) ?? new Set()).add(id));
  const locked: LockedRows = new Map();
  for (const [table, ids] of [...byTable].sort(([a], [b]) => (a.name < b.name ? -1 : 1))) {
    for (const id of ids) locked.set(placeOf(table, id), undefined);
    const { rows } = await run(table.statements.getAllLocked, [[...ids].map(idText)]);
    for (const row of rows) locked.set(`${table.name}\n${row[0]}`, row);
  }
  return locked;
}

function judge(tables: ReadonlyMap<string, PostgresTable>, one: Write): Judged {
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
    return { table, id, apply };
  }
  if ('update' in one) {
    const { update: id } = one;
    const make = one.change as (current: unknown) => unknown;
    const apply = (access: Access) =>
      write(access, table, id, (now) => now && encodeFor(table, id, make(now)));
    return { table, id, apply };
  }
  const isNew = 'insert' in one;
  const encoded = encodeRecord(isNew ? one.insert : one.put);
  const apply = (access: Access) => (isNew ? insert : put)(access, table, encoded);
  return { table, id: encoded.record.id, apply };
}
