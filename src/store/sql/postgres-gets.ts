// Records by id, many at once: those that are asked for while an answer is under way go together with the next
// question. When nobody else asks, one is asked for at once.
import type { Run } from './postgres-pool.ts';
import type { Statements } from './postgres-statements.ts';
import { idText, toPostgres } from './postgres-text.ts';

/** A row: id, data, version. */
export type StoredRow = readonly (string | null)[];

/** The row of an id, read after it was asked for; undefined where there is none. */
export type GetRow = (id: string) => Promise<StoredRow | undefined>;

/** At most so many questions are under way. */
const mostUnderWay = 2;
const mostAtOnce = 100;

/** What gets rows of a collection. */
export function createGets(run: Run, { get, getMany }: Pick<Statements, 'get' | 'getMany'>): GetRow {
  return together(async (ids) => {
    const { rows } = ids.length === 1 ? await run(get, ids) : await run(getMany, [ids]);
    return new Map(rows.map((row) => [row[0] ?? '', row]));
  });
}

/** A row, and those that it names, by the index that names them. */
interface RowWithNamed {
  row: StoredRow;
  named: { index: string; row: StoredRow }[];
}

/** What gets rows with those that they name. */
export function createNamedGets(
  run: Run,
  { getWithNamed }: Pick<Statements, 'getWithNamed'>,
): (id: string) => Promise<RowWithNamed | undefined> {
  return together(async (ids) => {
    const { rows } = await run(getWithNamed, [ids]);
    const found = new Map<string, RowWithNamed>();
    // First the rows that were asked for.
    for (const [index, by, ...row] of rows) {
      if (index === '') found.set(by ?? '', { row, named: [] });
      else found.get(by ?? '')?.named.push({ index: index ?? '', row });
    }
    return found;
  });
}

/**
 * Asks for many ids at once.
 * @param ask what it finds, by the id as PostgreSQL has it
 */
function together<T>(
  ask: (ids: string[]) => Promise<Map<string, T>>,
): (id: string) => Promise<T | undefined> {
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
    const asked = waiting;
    waiting = new Map();
    void answer(asked);
  }

  return (id) => {
    const text = idText(id);
    if (waiting.size >= mostAtOnce) flushAll();
    const known = waiting.get(text);
    if (known !== undefined) return known.promise;
    const one = Promise.withResolvers<T | undefined>();
    waiting.set(text, one);
    // What others ask for in this turn goes along.
    if (waiting.size === 1) queueMicrotask(flush);
    return one.promise;
  };
}
