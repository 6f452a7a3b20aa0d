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
import { type Parameter, type Run, stateOf } from './postgres-pool.ts';
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

/** The record with this id, unless it has expired. */
export async function find(run: Run, table: PostgresTable, id: string): Promise<AnyRecord | undefined> {
  const found = await read(run, table, id, false);
  return found === undefined || isExpired(found.record, table.clock()) ? undefined : found.record;
}

async function read(run: Run, table: PostgresTable, id: string, lock: boolean): Promise<Found | undefined> {
  const { get, getLocked } = table.statements;
  const { rows } = await run(lock ? getLocked : get, [columnText(id)]);
  const [row] = rows;
  return row && { record: recordIn(table, row), version: row[2] ?? '' };
}

/**
 * Replaces a record, or adds one, by what `make` says of it as it is then.
 * @param within whether `run` is of a transaction, which a key that is taken must not end
 * @returns what was written; undefined where `make` left it as it is
 * @throws what `make` throws; UniqueKeyError when another record has one of its keys.
 */
export async function write(
  run: Run,
  table: PostgresTable,
  id: string,
  make: Make,
  within: boolean,
): Promise<Encoded | undefined> {
  for (let tries = 0; tries < mostTries; tries++) {
    const found = await read(run, table, id, within || tries >= triesBeforeLock);
    const isThere = found !== undefined && !isExpired(found.record, table.clock());
    const next = make(isThere ? found.record : undefined);
    if (next === undefined) return undefined;
    if (within) await freeKeys(run, table, next.record, found?.record);
    if (await attempt(run, table, next, { found, within })) return next;
  }
  throw new StoreUnavailable(`others changed ${table.name} all the time`);
}

/**
 * Adds a record that must be new.
 * @throws UniqueKeyError when its id or one of its keys is taken.
 */
export async function insert(
  run: Run,
  table: PostgresTable,
  encoded: Encoded,
  within: boolean,
): Promise<void> {
  if (!within && (await attempt(run, table, encoded, { found: undefined, within }))) return;
  await write(
    run,
    table,
    encoded.record.id,
    (current) => {
      if (current !== undefined) throw new UniqueKeyError(table.name, 'id');
      return encoded;
    },
    within,
  );
}

/** Adds the record or replaces the one with its id: most are new. */
export async function put(run: Run, table: PostgresTable, encoded: Encoded, within: boolean): Promise<void> {
  if (!within && (await attempt(run, table, encoded, { found: undefined, within }))) return;
  await write(run, table, encoded.record.id, () => encoded, within);
}

/**
 * Writes a record, new or in place of a row of a version.
 * @returns whether it was written: not where the row is another by now, or a key was taken and is free
 */
async function attempt(
  run: Run,
  table: PostgresTable,
  next: Encoded,
  { found, within }: { found: Found | undefined; within: boolean },
): Promise<boolean> {
  try {
    return await store(run, table, next, found);
  } catch (error) {
    if (within || stateOf(error) !== uniqueViolation) throw error;
    await freeKeys(run, table, next.record, found?.record);
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
  run: Run,
  table: PostgresTable,
  record: AnyRecord,
  before: AnyRecord | undefined,
): Promise<void> {
  const had = new Set(before === undefined ? [] : keysOf(table.spec, before).unique);
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    if (had.has(slot([key, columnText(value)]))) continue;
    const { rows } = await run(table.statements.holder, [key, columnText(value)]);
    const [holder] = rows.map(([id]) => fromColumn(fromPostgres(id ?? '')));
    if (holder === undefined || holder === record.id) continue;
    const now = table.clock() / 1000;
    const { rows: gone } = await run(table.statements.takeExpired, [columnText(holder), now]);
    if (gone.length === 0 && (await find(run, table, holder)) !== undefined) {
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
