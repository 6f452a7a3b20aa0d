// What tables in memory hold at one snapshot: the texts of their records are never changed, only replaced.
import type { Snapshot } from '../contract.ts';
import { type AnyRecord, isExpired, parseRecord } from '../record.ts';
import type { Table } from './table.ts';

/** A copy of the tables as they are. @param at epoch milliseconds, for what has expired. */
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
