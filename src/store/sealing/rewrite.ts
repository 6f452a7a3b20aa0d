// Every record with sealed members written anew, wherever it is stored: in one transaction of the database, and each
// file of the configuration at once. What is cut short is done again as a whole.
import { DatabaseSync } from 'node:sqlite';
import { configurationSpecs, databaseFile } from '../create.ts';
import { openConfiguration } from '../lowdb/file.ts';
import { checksum, textOfRow } from '../sql/row.ts';
import { sqlCollections } from '../sql/schema.ts';
import { commitPragmas } from '../sql/sqlite-pragmas.ts';

const rowsAtOnce = 1000;

/** A stored text made another; undefined takes the record out. */
export type Rewrite = (collection: string, members: readonly string[], text: string) => string | undefined;

/** The stored texts of all records with sealed members, by collection, some at a time. */
export function* sealedTexts(
  database: DatabaseSync,
  name: string,
): Generator<{ rowid: number; text: string }> {
  const some = database.prepare(
    `SELECT rowid, id, data, sum FROM "${name}" WHERE rowid > ? ORDER BY rowid LIMIT ${rowsAtOnce}`,
  );
  for (let last = -1; ; ) {
    const rows = some.all(last);
    if (rows.length === 0) return;
    for (const row of rows) {
      last = Number(row.rowid);
      yield { rowid: last, text: textOfRow(name, row) };
    }
  }
}

/** Rewrites what the database keeps, with what `also` does in the same transaction, and nothing of it stays behind. */
export function rewriteDatabase(database: DatabaseSync, rewrite: Rewrite, also: () => void): void {
  database.exec(`${commitPragmas}; BEGIN IMMEDIATE`);
  let changed = false;
  try {
    for (const { name, spec } of sqlCollections()) {
      if (spec.sealed === undefined) continue;
      const update = database.prepare(`UPDATE "${name}" SET data = ?, sum = ? WHERE rowid = ?`);
      for (const { rowid, text } of sealedTexts(database, name)) {
        const next = rewrite(name, spec.sealed, text);
        if (next === text) continue;
        changed = true;
        if (next === undefined) removeRow(database, name, rowid);
        else update.run(next, checksum(name, next), rowid);
      }
    }
    also();
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
  if (changed) database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
}

/** Rewrites the files of the configuration. */
export async function rewriteConfiguration(directory: string, rewrite: Rewrite): Promise<void> {
  for (const [name, { sealed }] of configurationSpecs()) {
    if (sealed === undefined) continue;
    const low = await openConfiguration(directory, name);
    const texts = new Map<string, string>();
    let changed = false;
    for (const [id, text] of low.data) {
      const next = rewrite(name, sealed, text);
      changed ||= next !== text;
      if (next !== undefined) texts.set(id, next);
    }
    if (!changed) continue;
    low.data = texts;
    await low.write();
  }
}

/** Works on a store's database that nobody else has open. */
export function withDatabase<T>(directory: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(databaseFile(directory));
  try {
    return work(database);
  } finally {
    database.close();
  }
}

function removeRow(database: DatabaseSync, name: string, rowid: number): void {
  const id = database.prepare(`SELECT id FROM "${name}" WHERE rowid = ?`).get(rowid)?.id;
  for (const table of [`${name}_unique`, `${name}_index`]) {
    const there = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table);
    if (there !== undefined) database.prepare(`DELETE FROM "${table}" WHERE id = ?`).run(String(id));
  }
  database.prepare(`DELETE FROM "${name}" WHERE rowid = ?`).run(rowid);
}
