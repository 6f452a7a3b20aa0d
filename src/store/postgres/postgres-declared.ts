// The tables for the collections in collections.ts. The database records what the tables were made for; when a release
// declares more (a collection, a key, an indexed field, a sealed member), the tables are extended and the records of
// the collection rewritten, once.
import type { KeyObject } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { isCached } from '../../records/base/collection-spec.ts';
import { type AnySpec, addedIndexes, collectionSpecs, keyValues, parseRecord } from '../record.ts';
import { recordSeal, sealRest } from '../sealing/records.ts';
import { postgresDialect } from '../sql/dialect.ts';
import { fromPostgres, idText, jsonFromPostgres, valueText } from '../sql/postgres-text.ts';
import { fieldColumn, fieldIndex, textIndexes } from '../sql/schema.ts';
import type { Run } from './postgres-pool.ts';
import { rowOf } from './postgres-row.ts';
import { addition, keyTables, refill } from './postgres-statements.ts';

const { text } = postgresDialect;

/** The parts of a collection's declaration that its tables depend on. */
interface Declared {
  unique: string[];
  indexes: string[];
  fields: string[];
  sealed: string[];
}

export type Declaration = Record<string, Declared>;

const rewrittenAtOnce = 500;

/** Returns what this release declares. */
export function declaration(): Declaration {
  return Object.fromEntries(
    collectionSpecs().map(([name, spec]) => [
      name,
      {
        unique: Object.keys(spec.unique),
        indexes: Object.keys(spec.indexes),
        fields: [...(spec.indexed ?? [])],
        sealed: [...(spec.sealed ?? [])],
      },
    ]),
  );
}

/**
 * Returns the statements that create the tables of a collection, or the missing parts of them. Pages keep some room
 * (fillfactor), so that an updated row stays on its page and its indexes need not change.
 */
export function creation(name: string, spec: AnySpec): string[] {
  const { unique, index } = keyTables(spec);
  const fields = spec.indexed ?? [];
  const kind = spec.kept === 'memory' ? 'UNLOGGED ' : '';
  const keys = (table: string, primary: string) =>
    `CREATE ${kind}TABLE IF NOT EXISTS "${table}" (key ${text}, value ${text}, id ${text} NOT NULL, PRIMARY KEY (${primary}))`;
  const added = [
    ...fields.map((path) => `${fieldColumn(path)} ${text}`),
    ...(unique ? [`uniques text[] COLLATE "C" NOT NULL DEFAULT '{}'`] : []),
    ...(index ? [`indexes text[] COLLATE "C" NOT NULL DEFAULT '{}'`] : []),
  ];
  return [
    // `json` and not `jsonb`: the text is kept as written and its members keep their order, as in the other engines.
    `CREATE ${kind}TABLE IF NOT EXISTS "${name}" (id ${text} PRIMARY KEY, data json NOT NULL, expires_at double precision) WITH (fillfactor = 85)`,
    ...added.map((column) => `ALTER TABLE "${name}" ADD COLUMN IF NOT EXISTS ${column}`),
    `CREATE INDEX IF NOT EXISTS "${name}_expiry" ON "${name}" (expires_at) WHERE expires_at IS NOT NULL`,
    // Two indexes, because records without the field come last in both directions.
    ...fields.flatMap((path) => [
      `CREATE INDEX IF NOT EXISTS "${fieldIndex(name, path)}" ON "${name}" (${fieldColumn(path)}, id)`,
      `CREATE INDEX IF NOT EXISTS "${fieldIndex(name, path)}_descending" ON "${name}" (${fieldColumn(path)} DESC NULLS LAST, id)`,
    ]),
    ...(unique ? [keys(`${name}_unique`, 'key, value')] : []),
    ...(index ? [keys(`${name}_index`, 'key, value, id')] : []),
    ...(isCached(spec)
      ? [
          `CREATE OR REPLACE TRIGGER configuration_written AFTER INSERT OR UPDATE OR DELETE ON "${name}" FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_configuration_written()`,
        ]
      : []),
  ];
}

/** Refuses a database that a newer release has extended. @throws Error naming what is unknown. */
export function refuseNewer(known: Declaration): void {
  const own = declaration();
  const all = (one: Declared) => [...one.unique, ...one.indexes, ...one.fields, ...one.sealed];
  const foreign = Object.entries(known).flatMap(([name, there]) => {
    const here = own[name];
    if (here === undefined) return [name];
    const declared = all(here);
    return all(there).flatMap((one) => (declared.includes(one) ? [] : `${name}.${one}`));
  });
  if (foreign.length === 0) return;
  throw new Error(
    `the database has ${foreign.join(', ')}, which is not known here: a newer release of Gatehouse has changed it`,
  );
}

/**
 * Creates what is declared and does not exist yet, in the transaction of `run`.
 * @param known what exists
 * @param onRewrite called before the records of a collection are rewritten
 */
export async function addDeclared(
  run: Run,
  known: Declaration,
  { key, onRewrite }: { key: KeyObject; onRewrite(collection: string): void },
): Promise<void> {
  const declared = declaration();
  for (const [name, spec] of collectionSpecs()) {
    const [before, after] = [known[name], declared[name]];
    if (JSON.stringify(before) === JSON.stringify(after)) continue;
    const added = before && onlyIndexes(before, after) ? addedIndexes(spec, before) : undefined;
    if (added !== undefined) {
      // The tables exist; the statements that create them would block readers as well.
      onRewrite(name);
      await addKeys(run, name, { spec, added, key });
    } else {
      for (const statement of creation(name, spec)) await run({ text: statement }, []);
      if (before !== undefined) {
        onRewrite(name);
        await rewrite(run, name, spec, key);
      }
    }
    // A table with no other change gets these indexes without being locked (postgres-indexes.ts).
    for (const { sql } of textIndexes(name, spec, postgresDialect)) await run({ text: sql }, []);
  }
}

/** Returns whether two declarations differ in their indexes at most. */
function onlyIndexes(before: Declared, after: Declared | undefined): boolean {
  return isDeepStrictEqual({ ...before, indexes: [] }, { ...after, indexes: [] });
}

/** Rewrites the records of a collection with everything that is declared. */
async function rewrite(run: Run, name: string, spec: AnySpec, key: KeyObject): Promise<void> {
  const { unique, index } = keyTables(spec);
  await run({ text: `LOCK TABLE "${name}" IN ACCESS EXCLUSIVE MODE` }, []);
  for (const there of [unique && 'unique', index && 'index']) {
    if (there !== false) await run({ text: `DELETE FROM "${name}_${there}"` }, []);
  }
  for await (const records of allRecords(run, name, spec, key))
    for (const { record, sealed } of records)
      await run({ text: refill(name, spec) }, rowOf(spec, record, sealed));
}

/** Adds the keys of added indexes; the records can be read meanwhile. */
async function addKeys(
  run: Run,
  name: string,
  { spec, added, key }: { spec: AnySpec; added: AnySpec; key: KeyObject },
): Promise<void> {
  await run({ text: `LOCK TABLE "${name}" IN SHARE ROW EXCLUSIVE MODE` }, []);
  for await (const records of allRecords(run, name, spec, key)) {
    const rows = records.flatMap(({ record }) =>
      keyValues(added.indexes, record).map(([index, value]) => [idText(record.id), index, valueText(value)]),
    );
    const columns = [0, 1, 2].map((at) => rows.map((row) => row[at] ?? ''));
    if (rows.length > 0) await run({ text: addition(name) }, columns);
  }
}

/** Yields all records in batches, each with the text to store. */
async function* allRecords(run: Run, name: string, spec: AnySpec, key: KeyObject) {
  const seal = recordSeal(key, name, spec);
  for (let after = ''; ; ) {
    const { rows } = await run(
      { text: `SELECT id, data FROM "${name}" WHERE id > $1 ORDER BY id LIMIT ${rewrittenAtOnce}` },
      [after],
    );
    yield rows.map(([, data]) => {
      const stored = jsonFromPostgres(data ?? '');
      const sealed = spec.sealed === undefined ? stored : sealRest(key, name, spec.sealed, stored);
      return { record: spec.sealed === undefined ? parseRecord(stored) : seal.open(sealed), sealed };
    });
    const last = rows.at(-1)?.[0];
    if (last === undefined || last === null) return;
    after = fromPostgres(last);
  }
}
