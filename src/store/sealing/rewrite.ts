// Rewrites every record with sealed members: in the database in one transaction, in the configuration one file at a
// time. An interrupted rewrite is repeated as a whole.
import { DatabaseSync } from 'node:sqlite';
import { configurationSpecs, databaseFile } from '../create.ts';
import { openConfiguration } from '../lowdb/lowdb-file.ts';
import { checksum, textOfRow } from '../sql/row.ts';
import { sqlCollections } from '../sql/schema.ts';
import { commitPragmas } from '../sqlite/sqlite-pragmas.ts';

const rowsAtOnce = 1000;

/** Returns the new stored text of a record; undefined deletes the record. */
export type Rewrite = (collection: string, members: readonly string[], text: string) => string | undefined;

/** Yields the stored texts of a collection in the database, in batches. */
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

/**
 * Rewrites the records in the database, with what `also` does in the same transaction. Nothing of the old texts remains
 * in the file.
 */
export function rewriteDatabase(database: DatabaseSync, rewrite: Rewrite, beforeCommit: () => void): void {
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
    beforeCommit();
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
  if (changed) database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
}

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

/** Opens the database of a store that no other process has open, and closes it after `work`. */
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
    const existing = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table);
    if (existing !== undefined) database.prepare(`DELETE FROM "${table}" WHERE id = ?`).run(String(id));
  }
  database.prepare(`DELETE FROM "${name}" WHERE rowid = ?`).run(rowid);
}
