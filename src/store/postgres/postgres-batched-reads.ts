// Reads records by id in batches: ids requested while queries are under way go together in the next query. A single
// request is sent at once.

import { idText, toPostgres } from '../sql/postgres-text.ts';
import type { Run } from './postgres-pool.ts';
import type { Statements } from './postgres-statements.ts';

/** A row: id, data, version. */
export type StoredRow = readonly (string | null)[];

/** Returns the row of an id, read after the call; undefined if there is none. */
export type GetRow = (id: string) => Promise<StoredRow | undefined>;

const mostUnderWay = 2;
const mostAtOnce = 100;

export function createBatchedGet(run: Run, { get, getMany }: Pick<Statements, 'get' | 'getMany'>): GetRow {
  return batched(async (ids) => {
    const { rows } = ids.length === 1 ? await run(get, ids) : await run(getMany, [ids]);
    return new Map(rows.map((row) => [row[0] ?? '', row]));
  });
}

/** A row and the rows that it names, with the index that names each. */
interface RowWithNamed {
  row: StoredRow;
  named: { index: string; row: StoredRow }[];
}

export function createBatchedGetWithNamed(
  run: Run,
  { getWithNamed }: Pick<Statements, 'getWithNamed'>,
): (id: string) => Promise<RowWithNamed | undefined> {
  return batched(async (ids) => {
    const { rows } = await run(getWithNamed, [ids]);
    const found = new Map<string, RowWithNamed>();
    // The requested rows come first.
    for (const [index, by, ...row] of rows) {
      if (index === '') found.set(by ?? '', { row, named: [] });
      else found.get(by ?? '')?.named.push({ index: index ?? '', row });
    }
    return found;
  });
}

/**
 * Returns a function that requests many ids in one query.
 * @param ask returns the results by id, in PostgreSQL's form of the id
 */
function batched<T>(ask: (ids: string[]) => Promise<Map<string, T>>): (id: string) => Promise<T | undefined> {
  let waiting = new Map<string, PromiseWithResolvers<T | undefined>>();
  let underWay = 0;

  async function answer(asked: typeof waiting): Promise<void> {
    underWay += 1;
    try {
      const found = await ask([...asked.keys()]);
      for (const [id, { resolve }] of asked) resolve(found.get(toPostgres(id)));
    } catch (error) {
      for (const { reject } of asked.values()) reject(error);
    }
    underWay -= 1;
    flush();
  }

  function flush(): void {
    if (waiting.size > 0 && underWay < mostUnderWay) flushAll();
  }

  function flushAll(): void {
    const requested = waiting;
    waiting = new Map();
    void answer(requested);
  }

  return (id) => {
    const text = idText(id);
    if (waiting.size >= mostAtOnce) flushAll();
    const known = waiting.get(text);
    if (known !== undefined) return known.promise;
    const one = Promise.withResolvers<T | undefined>();
    waiting.set(text, one);
    // Requests that are made in the same turn go into the same query.
    if (waiting.size === 1) queueMicrotask(flush);
    return one.promise;
  };
}
