// Reads a whole collection, for those that are small by nature (applications, connections, APIs).

import type { Frozen, Stored } from '../records/base/record.ts';
import type { Collection } from './contract.ts';

const PAGE = 500;

/** Returns all records of a collection, in id order. */
export async function listAll<T extends Stored>(collection: Collection<T>): Promise<Frozen<T>[]> {
  const records: Frozen<T>[] = [];
  for (let after: string | undefined; ; ) {
    const page = await collection.list({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    records.push(...page.records);
    if (page.next === undefined) return records;
    after = page.next;
  }
}
