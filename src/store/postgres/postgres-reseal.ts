// The commands for the key of a store in PostgreSQL that no server uses. Each works in one transaction.
import type { KeyObject } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { SIGNING_ALGS } from '../../records/base/signing-algs.ts';
import { signingCheck } from '../../records/state/engine.ts';
import { type AnySpec, collectionSpecs } from '../record.ts';
import { checkOf, keyFile, keyIn, makeKey } from '../sealing/key.ts';
import { CHECK, CHECK_BEFORE, type KeySource } from '../sealing/open.ts';
import { keepKey, lostWith, newFile, sealingAnew } from '../sealing/reseal.ts';
import type { Rewrite } from '../sealing/rewrite.ts';
import { fromPostgres, jsonFromPostgres, jsonToPostgres } from '../sql/postgres-text.ts';
import { keyCheck, putKeyCheck, removeKeyChecks } from './postgres-key-check.ts';
import { inLongTransaction } from './postgres-long-transaction.ts';
import { openPool, type Run } from './postgres-pool.ts';
import { refusePooler } from './postgres-pooling.ts';
import { lockStart } from './postgres-schema.ts';
import { postgresStatements } from './postgres-statements.ts';

const IN_USE =
  'a server uses the database: stop all of them first, and the pooler where there is one, which keeps their connections';

const atOnce = 500;
/** How long to wait for a server that is just ending, in milliseconds. */
const GONE = 20_000;

type Source = KeySource & {
  url: string;
  /** How long to wait for ending servers, in milliseconds. */
  patience?: number;
};

/**
 * Seals all secrets of a database with another key: SECRETS_KEY if it is set, otherwise a new key in the key's file.
 * @param source.before the present key, if it is not in the key's file
 * @throws Error when a server uses the database, a pooler is in front of it, or none of the keys is the one it is
 * sealed with.
 */
export async function resealDatabase(source: Source & { before: KeyObject | undefined }): Promise<void> {
  const { dataDir, given, random, before: givenBefore } = source;
  const file = keyFile(dataDir);
  const made = await keyIn(newFile(file));
  const all = [given, givenBefore, await keyIn(file), made];
  await alone(source, async (run) => {
    const known = await keyCheck(run);
    const before = all.find((one) => one !== undefined && checkOf(one) === known);
    if (before === undefined) {
      throw new Error(
        `none of SECRETS_KEY, SECRETS_KEY_BEFORE and ${file} is the key that the database is sealed with`,
      );
    }
    // An earlier run was interrupted after its commit: only the key's file is left to be moved. With another key in
    // SECRETS_KEY, seal again.
    if (made !== undefined && before.equals(made) && (given === undefined || given.equals(made))) return;
    if (given?.equals(before) === true) {
      throw new Error(
        'SECRETS_KEY is the key already: set it to the new one, and SECRETS_KEY_BEFORE to this',
      );
    }
    const key = given ?? (await makeKey(newFile(file), random));
    const rewrite = sealingAnew(key, before);
    await rewriteAll(run, () => rewrite);
    await putKeyCheck(run, checkOf(key));
  });
  const key = given ?? (await keyIn(newFile(file)));
  const before = all.find((one) => one !== undefined && key?.equals(one) === false);
  if (key !== undefined) await keepKey(file, { key, ...(before && { before }) });
}

/**
 * For a key that is lost: removes the secrets that the present key (if any) does not open, and uses that key from now
 * on. In the configuration the members are removed, elsewhere the whole records.
 * @returns how many records and members were removed.
 * @throws Error when a server uses the database.
 */
export async function resetDatabase(source: Omit<Source, 'random'>) {
  const { dataDir, given } = source;
  const file = keyFile(dataDir);
  const key = given ?? (await keyIn(file).catch(() => undefined));
  const removed = { records: 0, members: 0 };
  const { isLost, withoutLost } = lostWith(key, removed);
  await alone(source, async (run) => {
    const checks = new Set<string>();
    const withoutRecord: Rewrite = (collection, members, text) => {
      if (!isLost(collection, members, text)) return text;
      removed.records++;
      // The check values that say that the store has had signing keys are removed with the keys.
      if (collection === 'signingKeys') for (const alg of SIGNING_ALGS) checks.add(signingCheck(alg));
      return undefined;
    };
    await rewriteAll(run, ({ kept }) => (kept === 'configuration' ? withoutLost : withoutRecord));
    await removeKeyChecks(run, [...checks, CHECK, CHECK_BEFORE]);
    if (key !== undefined) await putKeyCheck(run, checkOf(key));
  });
  if (key === undefined) await rm(file, { force: true });
  return removed;
}

/** Works in a transaction while no server uses the database and none can start. */
async function alone(
  { url, patience = GONE }: Pick<Source, 'url' | 'patience'>,
  work: (run: Run) => Promise<void>,
): Promise<void> {
  const pool = openPool(url, () => undefined);
  try {
    await refusePooler(pool.settings);
    await pool.alone((run) =>
      inLongTransaction(run, async () => {
        await lockStart(run);
        for (const end = performance.now() + patience; await isUsed(run); ) {
          if (performance.now() > end) throw new Error(IN_USE);
        }
        await work(run);
      }),
    );
  } finally {
    await pool.close();
  }
}

/** Returns whether a server has connections; if so, only after a short sleep. */
async function isUsed(run: Run): Promise<boolean> {
  // Within a transaction, statistics stay as they were first read unless this is called.
  await run({ text: 'SELECT pg_stat_clear_snapshot()' }, []);
  const { rows } = await run(
    {
      text: `SELECT pg_sleep(0.1) FROM pg_stat_activity WHERE application_name = 'gatehouse'
        AND datname = current_database() AND pid <> pg_backend_pid() LIMIT 1`,
    },
    [],
  );
  return rows.length > 0;
}

/** Rewrites all records with sealed members. */
async function rewriteAll(run: Run, rewriteOf: (spec: AnySpec) => Rewrite): Promise<void> {
  for (const [name, spec] of collectionSpecs()) {
    if (spec.sealed !== undefined) await rewriteTable(run, { name, spec, rewrite: rewriteOf(spec) });
  }
}

async function rewriteTable(
  run: Run,
  { name, spec, rewrite }: { name: string; spec: AnySpec; rewrite: Rewrite },
): Promise<void> {
  const { take } = postgresStatements(name, spec);
  for (let after = ''; ; ) {
    const { rows } = await run(
      { text: `SELECT id, data FROM "${name}" WHERE id > $1 ORDER BY id LIMIT ${atOnce}` },
      [after],
    );
    for (const [column, data] of rows) {
      const id = fromPostgres(column ?? '');
      const text = jsonFromPostgres(data ?? '');
      const next = rewrite(name, spec.sealed ?? [], text);
      // The time 0 makes the statement delete the record even if it has expired.
      if (next === undefined) await run({ text: take.text }, [id, 0]);
      else if (next !== text)
        await run({ text: `UPDATE "${name}" SET data = $2 WHERE id = $1` }, [id, jsonToPostgres(next)]);
    }
    const last = rows.at(-1)?.[0];
    if (last === undefined || last === null) return;
    after = fromPostgres(last);
  }
}
