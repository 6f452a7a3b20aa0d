// Snapshots of a SQLite database, read while others write: a separate connection whose transaction does not see later
// commits.
import { DatabaseSync } from 'node:sqlite';
import type { AnyRecord, AnySpec } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { sqliteDialect } from '../sql/dialect.ts';
import { readStatements, sqlCollections } from '../sql/schema.ts';
import { openRow } from './sqlite-store.ts';

const atOnce = 200;

export interface DatabaseSnapshot {
  /**
   * Yields the records of a collection that have not expired, in batches; nothing for a collection outside the
   * database.
   */
  records(name: string): AsyncGenerator<readonly AnyRecord[]>;
  close(): void;
}

/** Takes a snapshot of what is committed now. @param at the time in epoch seconds by which records are expired. */
export function openDatabaseSnapshot(
  file: string,
  at: number,
  sealOf: (collection: string, spec: AnySpec) => RecordSeal,
): DatabaseSnapshot {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    database.exec('BEGIN');
    // The snapshot is taken by the first query of the transaction.
    database.prepare('SELECT count(*) FROM meta').get();
  } catch (error) {
    database.close();
    throw error;
  }
  return {
    async *records(name) {
      const collection = sqlCollections().find((one) => one.name === name);
      if (collection === undefined) return;
      const seal = sealOf(name, collection.spec);
      const page = database.prepare(readStatements(name, sqliteDialect).page);
      for (let after = ''; ; ) {
        const rows = page.all(after, at, atOnce);
        yield rows.map((row) => openRow(file, name, row, seal));
        const last = rows.at(-1);
        if (last === undefined || rows.length < atOnce) return;
        after = String(last.id);
        // Lets other requests run between batches.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    close: () => database.close(),
  };
}
