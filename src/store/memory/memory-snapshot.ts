// A snapshot of tables in memory: the JSON texts of records are replaced, never modified, so copying references is
// enough.
import type { Snapshot } from '../contract.ts';
import { type AnyRecord, isExpired, parseRecord } from '../record.ts';
import type { Table } from './table.ts';

/** @param at the time in epoch milliseconds by which records are expired. */
export function tablesSnapshot(
  tables: Iterable<Table>,
  at: number,
): Snapshot & { has(name: string): boolean } {
  const texts = new Map([...tables].map(({ name, texts: now }) => [name, [...now.values()]]));
  return {
    at,
    has: (name) => texts.has(name),
    async *records(name): AsyncGenerator<readonly AnyRecord[]> {
      const records = (texts.get(name) ?? []).map(parseRecord);
      yield records.filter((record) => !isExpired(record, at));
    },
  };
}
