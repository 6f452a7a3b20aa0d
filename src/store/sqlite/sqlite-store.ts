// The collections in a SQLite file.

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import type { Stored } from '../../records/base/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import { threadEnvironment } from '../../runtime/compile-cache.js';
import { keepLatest } from '../../runtime/latest.ts';
import { putSpare, type SpareThreads } from '../../runtime/spare-threads.ts';
import { moduleBeside } from '../../runtime/worker-thread.ts';
import { type Collection, type Query, QueryTimeout, type Write } from '../contract.ts';
import { defaultLimit } from '../filter.ts';
import { type AnyRecord, type AnySpec, encodeRecord, encodeUpdate, hasKey, isExpired } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { type Candidate, candidatePage } from '../sql/candidate-page.ts';
import { commitAll, createSqlCollection, type Search } from '../sql/collection.ts';
import { sqliteDialect } from '../sql/dialect.ts';
import { columnText, fromColumn, RecordFault, type Row, recordOfRow } from '../sql/row.ts';
import {
  type Operation,
  readStatements,
  type SqlCollection,
  sqlCollections,
  writeStatements,
} from '../sql/schema.ts';
import { queryStatements } from '../sql/sql-filter.ts';
import {
  type Change,
  type Committed,
  createOverlay,
  find as findRecord,
  place,
  remove,
  type SqlTable,
} from '../sql/table.ts';
import { type Connection, createWriter, type Writer } from '../sql/writer.ts';
import { damageIn, integrityCheck, markOpen, namingDatabase } from './sqlite-file.ts';
import { commitPragmas } from './sqlite-pragmas.ts';
import type { Answer, Request } from './sqlite-worker.ts';

// SQLite inside Node. The main thread reads on its own connection; a worker thread commits, so that waiting for the
// disk never blocks the event loop. In WAL mode neither waits for the other.

/** How many recently read records of a collection, and how many ids without a record, are cached. */
const mostLatest = 200;
/** The longest id, in characters, that is cached as absent: clients choose ids in requests. */
const longestAbsent = 256;

/** Opens a database for reading on this thread; the file is marked as open until it is closed. */
function openReader(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  namingDatabase(file, () => {
    database.exec(commitPragmas);
    // From the first read on the log exists, and no other process can open the file exclusively.
    database.exec(`${markOpen(true)}; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA query_only = ON`);
  });
  return database;
}

/**
 * Closes the last connection, which moves the write-ahead log into the file. If the disk is too full even to mark the
 * file as closed, the connection is left to the end of the process, so that the log remains for the next start.
 */
function closeReader(database: DatabaseSync): void {
  try {
    // The checkpoint comes first because it frees space.
    database.exec('PRAGMA query_only = OFF; PRAGMA wal_checkpoint(TRUNCATE)');
    database.exec(markOpen(false));
  } catch {
    return;
  }
  database.close();
}

/** Returns the committed records of a collection. Its methods throw an Error naming the file when it is damaged. */
function sqliteCommitted(
  file: string,
  database: DatabaseSync,
  { name, spec }: SqlCollection,
  seal: RecordSeal,
): Committed {
  const statements = readStatements(name, sqliteDialect);
  const prepared = new Map<string, StatementSync>();
  const prepare = (key: keyof typeof statements) => {
    const known = prepared.get(key) ?? database.prepare(statements[key]);
    prepared.set(key, known);
    return known;
  };
  /**
   * Recently read records, kept up to date: a request reads some records several times. Records with sealed members are
   * not cached.
   */
  const latest = new Map<string, AnyRecord>();
  /** Recently requested ids without a record: a login looks several times for failed attempts that do not exist. */
  const absent = new Map<string, true>();
  const keep = (record: AnyRecord) => keepLatest(latest, mostLatest, record.id, record);
  const open = (row: Row) => openRow(file, name, row, seal);
  const all = (key: keyof typeof statements, ...parameters: (string | number)[]) =>
    prepare(key)
      .all(...parameters)
      .map(open);
  return {
    get(id) {
      const known = latest.get(id);
      if (known !== undefined || absent.has(id)) return known;
      const row = prepare('get').get(columnText(id));
      if (row === undefined) {
        if (id.length <= longestAbsent) keepLatest(absent, mostLatest, id, true);
        return undefined;
      }
      const record = open(row);
      if (spec.sealed === undefined) keep(record);
      return record;
    },
    changed(id, record) {
      absent.delete(id);
      const isKnown = latest.delete(id);
      if (isKnown && record !== undefined) keep(record);
    },
    holder(key, value) {
      const row = prepare('holder').get(key, columnText(value));
      return row === undefined ? undefined : fromColumn(String(row.id));
    },
    // The key is checked again: a damaged index must not lead to another record.
    find: (unique, key, value, now) =>
      all(unique ? 'findUnique' : 'findIndex', key, columnText(value), now).filter((record) =>
        hasKey(spec, record, key, value),
      ),
    page: (after, limit, now) => all('page', after === '' ? '' : columnText(after), now, limit),
    count: (now) => Number(prepare('count').get(now)?.n),
    isEmpty: () => Number(prepare('any').get()?.n) === 0,
    expired: (now, limit) => all('expired', now, limit),
  };
}

/** Returns the record of a row. @throws Error naming the file and the record when it is damaged or cannot be opened. */
export function openRow(file: string, name: string, row: Row, seal: RecordSeal): AnyRecord {
  try {
    return recordOfRow(name, row, seal);
  } catch (cause) {
    throw new RecordFault(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

interface SqliteOptions {
  /** The database's file, already checked. */
  file: string;
  clock: Clock;
  /** The clock by which expired records are deleted. */
  deletion: Clock;
  log: Pick<Logger, 'warn' | 'error'> | undefined;
  /** Whether the whole file was checked for damage; otherwise it is checked in the background. */
  checked: boolean;
  /** The time limit of a search, in milliseconds. */
  searchMs?: number | undefined;
  spareThreads?: SpareThreads | undefined;
  /** Called at the start of each method; throws when the store is closed. */
  check(): void;
  sealOf(collection: string, spec: AnySpec): RecordSeal;
}

export interface SqliteStore {
  collections: Map<string, Collection<Stored>>;
  batch(writes: readonly Write[]): Promise<void>;
  /** Deletes some expired records of each collection; returns whether there may be more. */
  purge(): Promise<boolean>;
  /** @see Store.compact */
  compact(): Promise<void>;
  /** @throws the reason when nothing can be written. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

const purgedAtOnce = 200;
/** A write that changes nothing. */
const probe = "INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', '')";

export function openSqlite(options: SqliteOptions): SqliteStore {
  const { file, clock, deletion, log, checked, searchMs, spareThreads, check, sealOf } = options;
  const reader = openReader(file);
  const writer = createWriter({
    connection: startConnection(file, [...writeStatements(sqliteDialect), probe], spareThreads),
    onFailure: (err) =>
      err === undefined
        ? log?.warn({ file }, 'the store can be written again')
        : log?.error({ err }, 'a write to the store failed, and those that waited for it'),
  });
  const searchers = searchThreads(() => startThread(file, []), searchMs);
  const checker = checked ? undefined : checkInBackground(file, writer);
  const search: Search = (table, query) => find(searchers, file, table, query);
  const tables = new Map(
    sqlCollections().map((collection): [string, SqlTable] => {
      const seal = sealOf(collection.name, collection.spec);
      const committed = sqliteCommitted(file, reader, collection, seal);
      const overlay = createOverlay();
      return [collection.name, { collection, clock, committed, overlay, seal }];
    }),
  );
  return {
    collections: new Map(
      [...tables].map(([name, table]) => [name, createSqlCollection({ table, writer, search, check })]),
    ),
    batch: (writes) =>
      commitAll(
        writer,
        writes.map((write) => plan(tables, write)),
      ),
    purge: () => purge(tables, writer, deletion),
    compact: () => writer.compact(),
    ready: () => ready(writer),
    async close() {
      await checker?.end();
      await searchers.end();
      await writer.close();
      closeReader(reader);
    },
  };
}

/** Checks the file while the store is in use. If damage is found, all further writes are refused with the reason. */
function checkInBackground(file: string, writer: Writer): Thread {
  const thread = startThread(file, []);
  const check = async () => {
    const rows = await thread.ask({ read: { sql: integrityCheck, parameters: [] } });
    const fault = damageIn(rows);
    if (fault !== undefined) writer.stop(new Error(`${file}: ${fault}`));
    await thread.end();
  };
  check().catch((error: Error & { code?: number }) => {
    // An error without a code means that the thread has ended: the store was closed, or there was no file descriptor.
    if (error.code !== undefined) writer.stop(error);
  });
  return thread;
}

function plan(tables: Map<string, SqlTable>, write: Write): () => Change {
  const table = tables.get(write.collection);
  if (table === undefined) throw new TypeError(`${write.collection} is no collection for a batch`);
  if ('delete' in write) return () => remove(table, [write.delete]);
  if ('update' in write)
    return () => change(table, write.update, write.change as (current: unknown) => unknown);
  const mustBeNew = 'insert' in write;
  const encoded = encodeRecord(mustBeNew ? write.insert : write.put);
  return () => place(table, encoded, mustBeNew);
}

function change(table: SqlTable, id: string, make: (current: unknown) => unknown): Change {
  const before = findRecord(table, id);
  if (before === undefined) return { table, operations: [], after: [] };
  return place(table, encodeUpdate(table.collection.name, id, make(before)), false, before);
}

async function purge(tables: Map<string, SqlTable>, writer: Writer, deletion: Clock): Promise<boolean> {
  let more = false;
  const now = deletion();
  for (const table of tables.values()) {
    const expired = table.committed.expired(now / 1000, purgedAtOnce);
    // A pending change may extend a record's life; and the expiry column may be damaged, so the record's own expiry is
    // checked.
    const ids = expired
      .filter((one) => table.overlay.get(one.id) === undefined && isExpired(one, now))
      .map(({ id }) => id);
    if (ids.length === 0) continue;
    more ||= ids.length === purgedAtOnce;
    await commitAll(writer, [() => remove(table, ids)]);
  }
  return more;
}

/** After a failure, tries a write that changes nothing, to find out whether writing works again. */
async function ready(writer: Writer): Promise<void> {
  if (writer.failure() === undefined) return;
  await writer.append([[writeStatements(sqliteDialect).length]], () => undefined);
}

function candidateOf(row: Row, record: Candidate['record']): Candidate {
  const held = Object.keys(row).flatMap((name) => (/^held\d+$/.test(name) ? row[name] === 1 : []));
  return { n: Number(row.n), held, record };
}

async function find(threads: SearchThreads, file: string, table: SqlTable, query: Query) {
  const { collection, committed, clock, seal } = table;
  // Most starts search the empty queue of deliveries; a thread for that would take 10 MB and most of the time of
  // opening.
  if (committed.isEmpty()) return { records: [], more: false, total: query.total ? 0 : undefined };
  const { limit = defaultLimit } = query;
  const now = clock() / 1000;
  const open = (row: Row) => openRow(file, collection.name, row, seal);
  const first = await candidatePage({ ...collection, now }, query, sqliteDialect, {
    numbers: async (statement) => {
      const [row = {}] = await threads.ask({ read: statement });
      return Object.values(row).map(Number);
    },
    candidates: async (statement) =>
      (await threads.ask({ read: statement })).map((row) => candidateOf(row, () => open(row))),
  });
  if (first.found !== undefined) return first.found;
  const { page, total } = queryStatements(collection, first.query, now, sqliteDialect);
  const [rows, counted] = await Promise.all([
    limit === 0 ? [] : threads.ask({ read: page }),
    query.total ? threads.ask({ read: total }) : undefined,
  ]);
  const records = rows.slice(0, limit).map(open);
  return {
    records,
    more: rows.length > limit,
    total: counted === undefined ? undefined : Number(counted[0]?.n),
  };
}

// The threads that run searches. SQLite cannot be interrupted, so a thread whose search exceeds its limit is abandoned
// and ends when its statement does; other searches need not wait for it.
// docs/understand/decisions/management-api.md#a-search-takes-at-most-five-seconds

type Rows = Record<string, unknown>[];

/** The time limit of a search, including its wait for a thread, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** The maximum number of threads searching at once: more would take the processor from logins. */
const MAX_SEARCHES = 2;
/** The maximum number of threads, including abandoned ones. */
const MAX_THREADS = 4;

export interface SearchThreads {
  /** Runs a search. @throws QueryTimeout; Error naming the file, with SQLite's code. */
  ask(request: Request): Promise<Rows>;
  /** Ends all threads; searches under way are rejected. */
  end(): Promise<void>;
}

interface SearchRequest extends PromiseWithResolvers<Rows> {
  request: Request;
  /** Set while a thread works on it. */
  thread?: Thread;
  timer?: NodeJS.Timeout;
}

/** @param start starts a thread. @param timeoutMs milliseconds. */
export function searchThreads(start: () => Thread, timeoutMs = TIMEOUT_MS): SearchThreads {
  const idle: Thread[] = [];
  const busy = new Set<Thread>();
  const ending = new Set<Promise<unknown>>();
  const queue: SearchRequest[] = [];
  let isOver = false;

  const giveUp = (thread: Thread) => {
    busy.delete(thread);
    const ended = thread.end().finally(() => {
      ending.delete(ended);
      next();
    });
    ending.add(ended);
  };
  const timeOut = (one: SearchRequest) => {
    const at = queue.indexOf(one);
    if (at >= 0) queue.splice(at, 1);
    refuse(one, new QueryTimeout());
    if (one.thread !== undefined) giveUp(one.thread);
    next();
  };
  const threadFor = (): Thread | undefined => {
    const known = idle.pop();
    if (known !== undefined) return known.ended() ? threadFor() : known;
    const isFull = busy.size >= MAX_SEARCHES || busy.size + ending.size >= MAX_THREADS;
    return isFull || isOver ? undefined : start();
  };
  const next = (): void => {
    const [one] = queue;
    const thread = one === undefined ? undefined : threadFor();
    if (one === undefined || thread === undefined) return;
    queue.shift();
    one.thread = thread;
    busy.add(thread);
    thread
      .ask(one.request)
      .then(one.resolve, one.reject)
      .finally(() => {
        clearTimeout(one.timer);
        if (!busy.delete(thread)) return;
        idle.push(thread);
        next();
      });
    next();
  };
  return {
    ask(request) {
      const one: SearchRequest = { request, ...Promise.withResolvers<Rows>() };
      one.timer = setTimeout(() => timeOut(one), timeoutMs);
      queue.push(one);
      next();
      return one.promise;
    },
    async end() {
      isOver = true;
      for (const one of queue.splice(0)) refuse(one, new Error('the store was closed'));
      await Promise.all([...[...idle, ...busy].map((thread) => thread.end()), ...ending]);
    },
  };
}

function refuse(one: SearchRequest, error: Error): void {
  clearTimeout(one.timer);
  one.reject(error);
}

// The threads that run SQLite, as seen from the main thread. Requests are answered in order.

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const syncFaults = [1034, 1290];

interface Thread {
  /** @throws Error naming the file, with SQLite's code. */
  ask(request: Request): Promise<Record<string, unknown>[]>;
  /** Ends the thread, whatever it is doing; open requests are rejected. */
  end(): Promise<unknown>;
  /** Closes the connection; the thread may then be used for another store. */
  close(): Promise<void>;
  ended(): boolean;
}

/** The spare threads that commit. Those that search have lowered their priority and are not reused. */
const WORK = 'sqlite';

/**
 * Starts a thread on a database, or reuses a spare one. It keeps the process alive only while a request is open.
 * @param spare where a thread is taken from, and returned to when it is closed.
 */
export function startThread(file: string, statements: string[], spare?: SpareThreads): Thread {
  const worker = spare?.take(WORK) ?? newWorker();
  worker.unref();
  const pending: PromiseWithResolvers<Record<string, unknown>[]>[] = [];
  let ended: Error | undefined;
  const end = (reason: Error) => {
    ended ??= reason;
    for (const one of pending.splice(0)) one.reject(ended);
  };
  worker.on('message', (answer: Answer) => {
    const one = pending.shift();
    if (pending.length === 0) worker.unref();
    if ('error' in answer) {
      one?.reject(Object.assign(new Error(`${file}: ${answer.error}`), { code: answer.code }));
    } else one?.resolve(answer.rows ?? []);
  });
  worker.on('error', (cause) => end(new Error(`${file}: ${cause.message}`, { cause })));
  worker.on('exit', () => end(new Error(`${file}: the thread that has it open has ended`)));
  worker.postMessage({ open: { file, statements } } satisfies Request);
  const ask = (request: Request): Promise<Record<string, unknown>[]> => {
    if (ended !== undefined) return Promise.reject(ended);
    const entry = Promise.withResolvers<Record<string, unknown>[]>();
    pending.push(entry);
    worker.ref();
    worker.postMessage(request);
    return entry.promise;
  };
  return {
    ask,
    end: () => worker.terminate(),
    async close() {
      await ask({ close: true, stays: spare !== undefined });
      if (spare !== undefined) putSpare(spare, WORK, worker);
    },
    ended: () => ended !== undefined,
  };
}

function newWorker(): Worker {
  const url = moduleBeside(import.meta.url, 'sqlite-worker');
  // Data lives only for one commit: a small young generation keeps memory use low.
  const resourceLimits = { maxYoungGenerationSizeMb: 8 };
  return new Worker(url, { name: 'sqlite', resourceLimits, env: threadEnvironment() });
}

/**
 * Returns the connection that commits, in a thread. If the thread has ended (for lack of a file descriptor, for
 * example) the next commit starts it again. After a failed sync, commits throw an error with `fatal`.
 */
function startConnection(file: string, statements: string[], spare?: SpareThreads): Connection {
  // Started at the first commit, because many commands only read.
  let thread: Thread | undefined;
  const running = () => {
    if (thread === undefined || thread.ended()) thread = startThread(file, statements, spare);
    return thread;
  };
  return {
    async commit(operations: Operation[]) {
      try {
        await running().ask({ commit: operations });
      } catch (error) {
        const { code } = error as { code?: number };
        throw code !== undefined && syncFaults.includes(code)
          ? Object.assign(error as Error, { fatal: true })
          : error;
      }
    },
    async compact() {
      await running().ask({ compact: true });
    },
    async close() {
      if (thread !== undefined && !thread.ended()) await thread.close();
    },
  };
}
