// Writes to one collection in PostgreSQL. A write reads the record, decides, and succeeds only if the row still has the
// version that was read: of two concurrent writes one is made and the other decides again. After some attempts it locks
// the row instead, so that no write is delayed indefinitely.
import type { Clock } from '../../runtime/clock.ts';
import { StoreUnavailable, UniqueKeyError } from '../contract.ts';
import { type AnyRecord, type AnySpec, type Encoded, isExpired, keyValues } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { fromPostgres, idText, jsonFromPostgres, toPostgres, valueText } from '../sql/postgres-text.ts';
import { fromColumn, RecordFault } from '../sql/row.ts';
import { slot } from '../sql/table.ts';
import type { GetRow, StoredRow } from './postgres-batched-reads.ts';
import { type Parameter, type Pool, type Run, stateOf, uniqueViolation } from './postgres-pool.ts';
import { columnsOf, differences, isAside, keysOf, rowOf } from './postgres-row.ts';
import type { Statements } from './postgres-statements.ts';

export interface PostgresTable {
  name: string;
  spec: AnySpec;
  clock: Clock;
  seal: RecordSeal;
  statements: Statements;
}

/** Returns what replaces a record (or adds it, for undefined); undefined leaves the record as it is. */
type Make = (current: AnyRecord | undefined) => Encoded | undefined;

const triesBeforeLock = 3;
const mostTries = 20;

interface Found {
  record: AnyRecord;
  version: string;
}

/** @throws RecordFault or SealFault naming the record when it is damaged or cannot be opened. */
export function recordIn({ name, seal }: PostgresTable, row: readonly (string | null)[]): AnyRecord {
  const [id, data] = row;
  const record = seal.open(jsonFromPostgres(data ?? ''));
  // The pool converts parameters in the same way.
  if (id === toPostgres(idText(record.id))) return record;
  const known = JSON.stringify(fromColumn(fromPostgres(id ?? '')));
  throw new RecordFault(`the record ${known} of ${name} is damaged: it has another id`);
}

/** How statements reach the database: within a transaction, or outside of one. */
export interface Access {
  run: Run;
  /** Only outside of a transaction. */
  outside?: { get: GetRow; transaction: Pool['transaction'] };
  /** Only in a transaction: the rows that it has locked and not written yet. */
  locked?: LockedRows;
}

/** Locked rows by {@link placeOf}; undefined if the row did not exist. */
export type LockedRows = Map<string, StoredRow | undefined>;

/** Returns a key for a record's row that is unique among all collections. */
export const placeOf = ({ name }: PostgresTable, id: string): string => `${name}\n${toPostgres(idText(id))}`;

/** Returns whether two records of a table could claim the same unique key. */
export const hasUniqueKeys = ({ spec }: PostgresTable): boolean => Object.keys(spec.unique).length > 0;

/** Called before a row is written: it is then no longer as it was locked. */
export function forget({ locked }: Access, table: PostgresTable, id: string): void {
  locked?.delete(placeOf(table, id));
}

/** Returns the record with this id, unless it has expired. */
export async function find(access: Access, table: PostgresTable, id: string): Promise<AnyRecord | undefined> {
  const found = await read(access, table, id);
  return found === undefined || isExpired(found.record, table.clock()) ? undefined : found.record;
}

/** In a transaction the row is locked until the transaction ends. */
async function read(access: Access, table: PostgresTable, id: string): Promise<Found | undefined> {
  const row = await rowFor(access, table, id);
  return row && { record: recordIn(table, row), version: row[2] ?? '' };
}

async function rowFor(access: Access, table: PostgresTable, id: string): Promise<StoredRow | undefined> {
  if (access.outside) return access.outside.get(id);
  const place = placeOf(table, id);
  if (access.locked?.has(place)) {
    const row = access.locked.get(place);
    forget(access, table, id);
    return row;
  }
  return (await access.run(table.statements.getLocked, [idText(id)])).rows[0];
}

/**
 * Replaces or adds a record with what `make` returns for its present state.
 * @returns what was written; undefined if `make` left the record as it is
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

/** Adds a record that must be new. @throws UniqueKeyError when its id or one of its keys is taken. */
export async function insert(access: Access, table: PostgresTable, encoded: Encoded): Promise<void> {
  // In a transaction, a violated unique key would abort the whole transaction, so keys are checked first.
  const tries = access.outside !== undefined || !hasUniqueKeys(table);
  if (tries && (await attempt(access, table, encoded, undefined))) return;
  await write(access, table, encoded.record.id, (current) => {
    if (current !== undefined) throw new UniqueKeyError(table.name, 'id');
    return encoded;
  });
}

/** Adds the record or replaces the one with its id. An insert is tried first, because most records are new. */
export async function put(access: Access, table: PostgresTable, encoded: Encoded): Promise<void> {
  if (access.outside && (await attempt(access, table, encoded, undefined))) return;
  await write(access, table, encoded.record.id, () => encoded);
}

// docs/understand/decisions/store.md#new-records-of-a-batch-in-postgresql-are-added-by-one-statement-a-collection
/**
 * Adds many records in a transaction, by one statement.
 * @param all with different ids
 * @returns those that were not added, because a record, perhaps an expired one, has their id or one of their unique keys.
 */
export async function insertMany(
  access: Access,
  table: PostgresTable,
  all: readonly Encoded[],
): Promise<readonly Encoded[]> {
  for (const { record } of all) forget(access, table, record.id);
  const free = await withFreeKeys(access, table, all);
  if (free.length === 0) return all;
  // In the order of the ids, so that two batches with the same records wait for one another instead of deadlocking.
  const rows = free
    .map((one) => rowOf(table.spec, one.record, table.seal.seal(one)))
    .sort(([a = ''], [b = '']) => ((a as string) < (b as string) ? -1 : 1));
  const { rows: written } = await access.run(table.statements.insertMany, columnsOf(rows));
  const added = new Set(written.map(([id]) => id));
  return all.filter(({ record }) => !added.has(toPostgres(idText(record.id))));
}

/** Returns those of some new records of which no other record, of those or of the table, has a unique key. */
async function withFreeKeys(
  { run }: Access,
  table: PostgresTable,
  all: readonly Encoded[],
): Promise<readonly Encoded[]> {
  if (!hasUniqueKeys(table)) return all;
  const taken = new Set<string>();
  const claims = all.map((encoded) => {
    const pairs = keyValues(table.spec.unique, encoded.record).map(
      ([key, value]) => [key, valueText(value)] as const,
    );
    return { encoded, pairs, slots: pairs.map(([key, value]) => slot([key, toPostgres(value)])) };
  });
  const pairs = claims.flatMap((claim) => claim.pairs);
  if (pairs.length > 0) {
    const columns = [pairs.map(([key]) => key), pairs.map(([, value]) => value)];
    const { rows } = await run(table.statements.held, columns);
    for (const [key, value] of rows) taken.add(slot([key ?? '', value ?? '']));
  }
  return claims
    .filter(({ slots }) => {
      const isFree = !slots.some((one) => taken.has(one));
      for (const one of slots) taken.add(one);
      return isFree;
    })
    .map(({ encoded }) => encoded);
}

// docs/understand/decisions/store.md#a-change-in-postgresql-applies-only-to-the-version-of-the-row-that-was-read
/**
 * Writes a record, as a new row or in place of a row with its version.
 * @returns whether it was written; false if the row has changed meanwhile, or if a unique key was taken by an expired
 * record and has been freed
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

/**
 * Deletes expired records that have unique keys which a record needs.
 * @throws UniqueKeyError when a record that has not expired has one of them.
 */
async function freeKeys(
  access: Access,
  table: PostgresTable,
  record: AnyRecord,
  before: AnyRecord | undefined,
): Promise<void> {
  const had = new Set(before === undefined ? [] : keysOf(table.spec, before).unique);
  for (const [key, value] of keyValues(table.spec.unique, record)) {
    if (had.has(slot([key, valueText(value)]))) continue;
    const { rows } = await access.run(table.statements.holder, [key, valueText(value)]);
    const [holder] = rows.map(([id]) => fromColumn(fromPostgres(id ?? '')));
    if (holder === undefined || idText(holder) === idText(record.id)) continue;
    const now = table.clock() / 1000;
    forget(access, table, holder);
    const { rows: gone } = await access.run(table.statements.takeExpired, [idText(holder), now]);
    if (gone.length === 0 && (await find(access, table, holder)) !== undefined) {
      throw new UniqueKeyError(table.name, key);
    }
  }
}
