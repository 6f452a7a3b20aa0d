// All that a SQLite database holds at one snapshot, read while others write: a connection of its own, whose transaction
// sees nothing that was committed since.
import { DatabaseSync } from 'node:sqlite';
import type { AnySpec } from '../keys.ts';
import type { AnyRecord } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { sqliteDialect } from './dialect.ts';
import { readStatements, sqlCollections } from './schema.ts';
import { openRow } from './sqlite.ts';

const atOnce = 200;

export interface DatabaseSnapshot {
  /** The records of a collection that have not expired, some at a time; nothing for one that is not in the database. */
  records(name: string): AsyncGenerator<readonly AnyRecord[]>;
  close(): void;
}

/** Holds what is committed when this is called. @param at epoch seconds, for what has expired. */
export function openDatabaseSnapshot(
  file: string,
  at: number,
  sealOf: (collection: string, spec: AnySpec) => RecordSeal,
): DatabaseSnapshot {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    database.exec('BEGIN');
    // The transaction begins with its first read.
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
        // Requests in between do not wait for all of it.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    close: () => database.close(),
  };
}
