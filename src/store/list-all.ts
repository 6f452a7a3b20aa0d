// Reads a whole collection.

import type { Frozen, Stored } from '../records/base/record.ts';
import type { Collection, Query } from './contract.ts';

const PAGE = 500;

/**
 * Yields the records that a query selects, some at a time.
 * @param query with how many are read at once in `limit`.
 */
export async function* pagesOf<T extends Stored>(
  collection: Pick<Collection<T>, 'list'>,
  query: Omit<Query, 'after'>,
): AsyncGenerator<readonly Frozen<T>[]> {
  for (let after: string | undefined; ; ) {
    const page = await collection.list({ ...query, ...(after !== undefined && { after }) });
    yield page.records;
    if (page.next === undefined) return;
    after = page.next;
  }
}

/** Returns all records of a collection, in id order, for those that are small by nature (applications, connections, APIs). */
export async function listAll<T extends Stored>(collection: Collection<T>): Promise<Frozen<T>[]> {
  const records: Frozen<T>[] = [];
  for await (const page of pagesOf(collection, { limit: PAGE })) records.push(...page);
  return records;
}
