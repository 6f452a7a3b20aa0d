// Writes to one collection in PostgreSQL. A write reads the record, decides, and is made where the row is still the
// version that was read: of two that do so at once one is made and the other decides anew. After some tries it locks
// the row instead, so that none is put off for ever.
import type { Clock } from '../../runtime/clock.ts';
import { StoreUnavailable, UniqueKeyError } from '../contract.ts';
import { fieldValue } from '../filter.ts';
import { type AnySpec, keyValues } from '../keys.ts';
import { type AnyRecord, type Encoded, encodeRecord, isExpired } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { slot } from './overlay.ts';
import type { GetRow } from './postgres-gets.ts';
import { type Parameter, type Pool, type Run, stateOf } from './postgres-pool.ts';
import type { Statements } from './postgres-statements.ts';
import { fromPostgres, jsonFromPostgres, jsonToPostgres, toPostgres } from './postgres-text.ts';
import { RecordFault } from './row.ts';
import { columnText, fromColumn } from './text.ts';

export interface PostgresTable {
  name: string;
  spec: AnySpec;
  clock: Clock;
  seal: RecordSeal;
  statements: Statements;
}

/** What makes of a record, or of none, the one that replaces it; undefined leaves it as it is. */
export type Make = (current: AnyRecord | undefined) => Encoded | undefined;

const uniqueViolation = '23505';
const triesBeforeLock = 3;
const mostTries = 20;

/** A row that was read, with its version. */
interface Found {
  record: AnyRecord;
  version: string;
}

/** The record of a row: id, data. @throws RecordFault and SealFault naming the record when it is damaged or cannot be opened. */
export function recordIn({ name, seal }: PostgresTable, row: readonly (string | null)[]): AnyRecord {
  const [id, data] = row;
  const record = seal.open(jsonFromPostgres(data ?? ''));
  if (id === idText(record.id)) return record;
  const known = JSON.stringify(fromColumn(fromPostgres(id ?? '')));
  throw new RecordFault(`the record ${known} of ${name} is damaged: it has another id`);
}

/** The id as it is in a row; a parameter is written so by the pool. */
const idText = (id: string) => toPostgres(columnText(id));

/** The way to the database: a transaction, or outside of one. */
export interface Access {
  run: Run;
  /** Outside of a transaction. */
  outside?: { get: GetRow; transaction: Pool['transaction'] };
}

/** The record with this id, unless it has expired. */
export async function find(access: Access, table: PostgresTable, id: string): Promise<AnyRecord | undefined> {
  const found = await read(access, table, id);
  return found === undefined || isExpired(found.record, table.clock()) ? undefined : found.record;
}

/** In a transaction the row is locked until its end. */
async function read({ run, outside }: Access, table: PostgresTable, id: string): Promise<Found | undefined> {
  const row = outside
    ? await outside.get(id)
    : (await run(table.statements.getLocked, [columnText(id)])).rows[0];
  return row && { record: recordIn(table, row), version: row[2] ?? '' };
}

/**
 * Replaces a record, or adds one, by what `make` says of it as it is then.
 * @returns what was written; undefined where `make` left it as it is
 * @throws what `make` throws; UniqueKeyError when another record has one of its keys.
 */
export async function write(
  access: Access,
  table: PostgresTable,
  id: string,
  make: Make,
): Promise<Encoded | undefined> {
  const { outside } = access;
  for (let tries = 0; tries < mostTries; tries++) {
    if (outside && tries === triesBeforeLock) {
      return outside.transaction((within) => write({ run: within }, table, id, make));
    }
    const found = await read(access, table, id);
    const isThere = found !== undefined && !isExpired(found.record, table.clock());
    const next = make(isThere ? found.record : undefined);
    if (next === undefined) return undefined;
    if (!outside) await freeKeys(access, table, next.record, found?.record);
    if (await attempt(access, table, next, found)) return next;
  }
  throw new StoreUnavailable(`others changed ${table.name} all the time`);
}

/**
 * Adds a record that must be new.
 * @throws UniqueKeyError when its id or one of its keys is taken.
 */
export async function insert(access: Access, table: PostgresTable, encoded: Encoded): Promise<void> {
  if (access.outside && (await attempt(access, table, encoded, undefined))) return;
  await write(access, table, encoded.record.id, (current) => {
    if (current !== undefined) throw new UniqueKeyError(table.name, 'id');
    return encoded;
  });
}

/** Adds the record or replaces the one with its id: most are new. */
export async function put(access: Access, table: PostgresTable, encoded: Encoded): Promise<void> {
  if (access.outside && (await attempt(access, table, encoded, undefined))) return;
  await write(access, table, encoded.record.id, () => encoded);
}

/**
 * Writes a record, new or in place of a row of a version.
 * @returns whether it was written: not where the row is another by now, or a key was taken and is free
 */
async function attempt(
  access: Access,
  table: PostgresTable,
  next: Encoded,
  found: Found | undefined,
): Promise<boolean> {
  try {
    return await store(access.run, table, next, found);
  } catch (error) {
    if (!access.outside || stateOf(error) !== uniqueViolation) throw error;
    await freeKeys(access, table, next.record, found?.record);
    return false;
  }
}

async function store(
  run: Run,
  { spec, statements, seal }: PostgresTable,
  next: Encoded,
  found: Found | undefined,
): Promise<boolean> {
  const { record } = next;
  const [id = null, data = null, ...beside] = rowOf(spec, record, seal.seal(next));
  if (found === undefined) {
    const { rows } = await run(statements.insert, [id, data, ...beside]);
    return rows[0]?.[0] === '1';
  }
  const keys = keysOf(spec, record);
  const old = keysOf(spec, found.record);
  const [unique, indexes] = [differences(old.unique, keys.unique), differences(old.indexes, keys.indexes)];
  if (isAside(spec, found.record, record) && unique.same && indexes.same) {
    return (await run(statements.change, [id, found.version, data])).count === 1;
  }
  const changes: Parameter[] = [
    ...(Object.keys(spec.unique).length > 0 ? [unique.removed, unique.added] : []),
    ...(Object.keys(spec.indexes).length > 0 ? [indexes.removed, indexes.added] : []),
  ];
  const parameters = [id, found.version, data, ...beside, ...changes];
  const { rows } = await run(statements.replace, parameters);
  return rows[0]?.[0] === '1';
}

/** A record's row: its id, its stored text, when it expires, its indexed fields, its lists of keys. */
export function rowOf(spec: AnySpec, record: AnyRecord, stored: string): Parameter[] {
  return [
    columnText(record.id),
    jsonToPostgres(stored),
    record.expiresAt ?? null,
    ...(spec.indexed ?? []).map((path) => field(spec, record, path)),
    ...lists(spec, keysOf(spec, record)),
  ];
}

const field = (spec: AnySpec, record: AnyRecord, path: string) => {
  const value = fieldValue(spec, record, path);
  return typeof value === 'string' ? value : null;
};

/** Whether two records are alike in what is beside them in their row. */
function isAside(spec: AnySpec, a: AnyRecord, b: AnyRecord): boolean {
  return (
    a.expiresAt === b.expiresAt &&
    (spec.indexed ?? []).every((path) => fieldValue(spec, a, path) === fieldValue(spec, b, path))
  );
}

/** The values of a record's keys, as they are listed in its row. */
interface Slots {
  unique: string[];
  indexes: string[];
}

function keysOf({ unique, indexes }: AnySpec, record: AnyRecord): Slots {
  const slots = (keys: AnySpec['unique']) =>
    keyValues(keys, record).map(([key, value]) => slot([key, columnText(value)]));
  return { unique: slots(unique), indexes: slots(indexes) };
}

const lists = ({ unique, indexes }: AnySpec, keys: Slots): string[][] => [
  ...(Object.keys(unique).length > 0 ? [keys.unique] : []),
  ...(Object.keys(indexes).length > 0 ? [keys.indexes] : []),
];

function differences(old: string[], next: string[]) {
  const [before, after] = [new Set(old), new Set(next)];
  const removed = old.filter((one) => !after.has(one));
  const added = next.filter((one) => !before.has(one));
  return { removed, added, same: removed.length === 0 && added.length === 0 };
}

/**
 * Deletes expired records that have keys which a record is to get.
 * @throws UniqueKeyError when one that has not expired has one of them.
 */
async function freeKeys(
  access: Access,
  table: PostgresTable,
  record: AnyRecord,
  before: AnyRecord | undefined,
): Promise<void> {
  const had = new Set(before === undefined ? [] : keysOf(table.spec, before).unique);
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    if (had.has(slot([key, columnText(value)]))) continue;
    const { rows } = await access.run(table.statements.holder, [key, columnText(value)]);
    const [holder] = rows.map(([id]) => fromColumn(fromPostgres(id ?? '')));
    if (holder === undefined || holder === record.id) continue;
    const now = table.clock() / 1000;
    const { rows: gone } = await access.run(table.statements.takeExpired, [columnText(holder), now]);
    if (gone.length === 0 && (await find(access, table, holder)) !== undefined) {
      throw new UniqueKeyError(table.name, key);
    }
  }
}

/** @throws TypeError when what is to replace a record has another id. */
export function encodeFor({ name }: PostgresTable, id: string, made: unknown): Encoded {
  const next = encodeRecord(made);
  if (next.record.id !== id) throw new TypeError(`${name}: an update must keep the id`);
  return next;
}
