// The methods of the contract over PostgreSQL. A write is committed when it resolves; a read returns what is committed,
// and waits for earlier writes of this process.
import { AsyncResource } from 'node:async_hooks';
import type { Stored } from '../../records/base/record.ts';
import type { CollectionName } from '../../records/collections.ts';
import { type Collection, type Query, QueryTimeout, StoreUnavailable, UniqueKeyError } from '../contract.ts';
import { checkQuery, defaultLimit } from '../filter.ts';
import {
  type AnyRecord,
  type Encoded,
  encodeRecord,
  encodeUpdate,
  hasKey,
  isExpired,
  isUniqueKey,
} from '../record.ts';
import type { Statement } from '../sql/any-order.ts';
import { type Candidate, candidatePage } from '../sql/candidate-page.ts';
import { type Found, pageOf } from '../sql/collection.ts';
import { postgresDialect } from '../sql/dialect.ts';
import { idText, valueText } from '../sql/postgres-text.ts';
import { queryStatements } from '../sql/sql-filter.ts';
import { slot } from '../sql/table.ts';
import { createBatchedGet, createBatchedGetWithNamed, type StoredRow } from './postgres-batched-reads.ts';
import { type Pool, stateOf } from './postgres-pool.ts';
import { type Access, find, insert, type PostgresTable, put, recordIn, write } from './postgres-table.ts';

interface PostgresCollectionOptions {
  table: PostgresTable;
  pool: Pool;
  /** Runs a method and counts it as under way. @throws Error when the store is closed. */
  track<R>(work: () => Promise<R>): Promise<R>;
  tableOf(name: string): PostgresTable | undefined;
}

/** A change that waits to be made together with other changes of its record. */
interface Waiting {
  make(current: AnyRecord | undefined): Encoded | undefined;
  resolve(record: AnyRecord | undefined): void;
  reject(reason: unknown): void;
}

export function createPostgresCollection({
  table,
  pool,
  track,
  tableOf,
}: PostgresCollectionOptions): Collection<Stored> {
  const { run, read, transaction } = pool;
  const outside = { get: createBatchedGet(read, table.statements), transaction };
  const parts: Parts = { table, pool, access: { run, outside }, order: createWriteOrder<Waiting>() };
  const named = table.spec.named && { getWithNamed: getWithNamed(parts, tableOf) };
  return tracked({ ...reads(parts), ...named, ...writes(parts) }, track);
}

interface Parts {
  table: PostgresTable;
  pool: Pool;
  access: Access;
  order: WriteOrder<Waiting>;
}

type Reads = Pick<Collection<Stored>, 'get' | 'findBy' | 'list' | 'count'>;

function tracked(methods: Collection<Stored>, track: PostgresCollectionOptions['track']): Collection<Stored> {
  const wrapped = Object.entries(methods).map(
    ([name, method]: [string, (...given: never[]) => Promise<unknown>]) => [
      name,
      (...given: never[]) => track(() => method(...given)),
    ],
  );
  return Object.fromEntries(wrapped);
}

function reads({ table, pool, access, order }: Parts): Reads {
  const { spec, clock, statements } = table;
  return {
    async get(id) {
      await order.of(id);
      return find(access, table, id);
    },
    async findBy(index, value) {
      const statement = isUniqueKey(table, index) ? statements.findUnique : statements.findIndex;
      const { rows } = await pool.read(statement, [index, valueText(value), clock() / 1000]);
      return rows.map((row) => recordIn(table, row)).filter((one) => hasKey(spec, one, index, value));
    },
    async list(query = {}) {
      checkQuery(spec, query);
      await order.all();
      return pageOf(query, await search(pool, table, query));
    },
    async count() {
      await order.all();
      const { rows } = await pool.run(statements.count, [clock() / 1000]);
      return Number(rows[0]?.[0]);
    },
  };
}

function getWithNamed(
  { table, pool, order }: Parts,
  tableOf: PostgresCollectionOptions['tableOf'],
): NonNullable<Collection<Stored>['getWithNamed']> {
  const rowOf = createBatchedGetWithNamed(pool.read, table.statements);
  const present = (of: PostgresTable, row: StoredRow) => {
    const record = recordIn(of, row);
    return isExpired(record, of.clock()) ? undefined : record;
  };
  return async (id) => {
    await order.of(id);
    const found = await rowOf(id);
    if (found === undefined) return undefined;
    const record = present(table, found.row);
    if (record === undefined) return undefined;
    const named = found.named.flatMap(({ index, row }) => {
      const collection = table.spec.named?.[index]?.collection;
      const of = collection === undefined ? undefined : tableOf(collection);
      const other = of && present(of, row);
      // `tableOf` only returns tables of declared collections.
      return other === undefined ? [] : { collection: collection as CollectionName, record: other };
    });
    return { record, named };
  };
}

function writes({
  table,
  pool,
  access,
  order,
}: Parts): Omit<Collection<Stored>, keyof Reads | 'getWithNamed'> {
  const { name, clock, statements } = table;

  /** Changes a record, together with other changes of it that wait in this process. */
  function change(id: string, make: Waiting['make']): Promise<AnyRecord | undefined> {
    // `make` keeps its own async context (of its request), because another request may start the write.
    const own = AsyncResource.bind(make);
    return new Promise((resolve, reject) => {
      order
        .join(id, { make: own, resolve, reject }, (all) => changeAll(access, table, id, all))
        .catch(reject);
    });
  }

  return {
    async insert(record) {
      const encoded = encodeRecord(record);
      await order.take(encoded.record.id, () => insert(access, table, encoded));
    },
    async put(record) {
      const encoded = encodeRecord(record);
      await order.take(encoded.record.id, () => put(access, table, encoded));
    },
    update: (id, make) => change(id, (current) => current && encodeUpdate(name, id, make(current))),
    async upsert(id, make) {
      const record = await change(id, (current) => encodeUpdate(name, id, make(current)));
      if (record === undefined) throw new Error(`${name}: nothing was written`);
      return record;
    },
    take: (id) => order.take(id, () => take(pool, table, id)),
    delete: async (id) => (await order.take(id, () => take(pool, table, id))) !== undefined,
    async deleteBy(index, value) {
      const statement = isUniqueKey(table, index) ? statements.deleteByUnique : statements.deleteByIndex;
      await order.all();
      const text = valueText(value);
      const { rows } = await pool.run(statement, [index, text, clock() / 1000, slot([index, text])]);
      return rows.length;
    },
  };
}

async function take({ run }: Pool, table: PostgresTable, id: string): Promise<AnyRecord | undefined> {
  const { rows } = await run(table.statements.take, [idText(id), table.clock() / 1000]);
  return rows[0] && recordIn(table, rows[0]);
}

/**
 * Makes several changes of one record as one write, each based on the result of the previous one; a change that throws
 * is left out.
 */
async function changeAll(
  access: Access,
  table: PostgresTable,
  id: string,
  all: readonly Waiting[],
): Promise<void> {
  let settled: (() => void)[] = [];
  const make = (current: AnyRecord | undefined) => {
    settled = [];
    let last: Encoded | undefined;
    for (const one of all) {
      try {
        const made = one.make(last?.record ?? current);
        last = made ?? last;
        settled.push(() => one.resolve(made?.record));
      } catch (error) {
        settled.push(() => one.reject(error));
      }
    }
    return last;
  };
  try {
    await write(access, table, id, make);
  } catch (error) {
    // One of the changes needs a key of another record: make each change separately.
    if (all.length > 1 && error instanceof UniqueKeyError) {
      for (const one of all) await changeAll(access, table, id, [one]);
    } else for (const one of all) one.reject(error);
    return;
  }
  for (const settle of settled) settle();
}

// Queries in PostgreSQL.

const queryCanceled = '57014';

/** Returns a page of a query's result and, if the query asks for it, the number of matches. @throws QueryTimeout */
async function search({ run }: Pool, table: PostgresTable, query: Query): Promise<Found> {
  const { limit = defaultLimit } = query;
  const now = table.clock() / 1000;
  try {
    const ask = async ({ sql, parameters }: Statement) => (await run({ text: sql }, parameters)).rows;
    const first = await candidatePage({ ...table, now }, query, postgresDialect, {
      numbers: async (statement) => ((await ask(statement))[0] ?? []).map(Number),
      candidates: async (statement) =>
        (await ask(statement)).map((row) => candidateOf(row, () => recordIn(table, row))),
    });
    if (first.found !== undefined) return first.found;
    const { page, total } = queryStatements(table, first.query, now, postgresDialect);
    const [found, counted] = await Promise.all([
      limit === 0 ? { rows: [] } : run({ text: page.sql }, page.parameters),
      query.total ? run({ text: total.sql }, total.parameters) : undefined,
    ]);
    const records = found.rows.slice(0, limit).map((row) => recordIn(table, row));
    const count = counted === undefined ? undefined : Number(counted.rows[0]?.[0]);
    return { records, more: found.rows.length > limit, total: count };
  } catch (error) {
    if (error instanceof StoreUnavailable && stateOf(error.database) === queryCanceled)
      throw new QueryTimeout();
    throw error;
  }
}

function candidateOf(row: readonly (string | null)[], record: Candidate['record']): Candidate {
  const [n, ...held] = row.slice(postgresDialect.stored.length);
  return { n: Number(n), held: held.map((one) => one === '1'), record };
}

// The order of this process's own writes: writes of one record are made one after another, in the order of the calls,
// and a read waits for those that came before it. Waiting changes of one record are made together, as one write.

/** The position of a write; others may join it until it begins. */
interface Turn<T> {
  done: Promise<void>;
  joined: T[] | undefined;
}

interface WriteOrder<T> {
  /** Makes a write of a record after the earlier writes of the same record. */
  take<R>(id: string, work: () => Promise<R>): Promise<R>;
  /** As `take`, together with the changes that join before it begins. */
  join(id: string, one: T, work: (all: T[]) => Promise<void>): Promise<void>;
  /** Resolves when the last write of a record is done; undefined if none is under way. */
  of(id: string): Promise<void> | undefined;
  /** Resolves when all writes under way are done. */
  all(): Promise<unknown>;
}

/** Returns an order with no write under way. */
function createWriteOrder<T>(): WriteOrder<T> {
  const last = new Map<string, Turn<T>>();

  function enter<R>(id: string, joined: T[] | undefined, work: () => Promise<R>): Promise<R> {
    const before = last.get(id)?.done;
    const turn: Turn<T> = { done: Promise.resolve(), joined };
    const run = async () => {
      if (before !== undefined) await before;
      turn.joined = undefined;
      return work();
    };
    const result = run();
    turn.done = result.then(leave, leave);
    function leave(): void {
      if (last.get(id) === turn) last.delete(id);
    }
    last.set(id, turn);
    return result;
  }

  return {
    take: (id, work) => enter(id, undefined, work),
    join(id, one, work) {
      const turn = last.get(id);
      if (turn?.joined !== undefined) {
        turn.joined.push(one);
        return turn.done;
      }
      const all = [one];
      return enter(id, all, () => work(all));
    },
    of: (id) => last.get(id)?.done,
    all: () => Promise.all([...last.values()].map(({ done }) => done)),
  };
}
