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
  let waiting = new Map<string, PromiseWithResolvers<StoredRow | undefined>>();
  let underWay = 0;

  async function ask(asked: typeof waiting): Promise<void> {
    underWay += 1;
    try {
      const ids = [...asked.keys()];
      const { rows } = ids.length === 1 ? await run(get, ids) : await run(getMany, [ids]);
      const found = new Map(rows.map((row) => [row[0], row]));
      for (const [id, { resolve }] of asked) resolve(found.get(toPostgres(id)));
    } catch (error) {
      for (const { reject } of asked.values()) reject(error);
    }
    underWay -= 1;
    flush();
  }

  function flush(): void {
    if (waiting.size === 0 || underWay >= mostUnderWay) return;
    const asked = waiting;
    waiting = new Map();
    void ask(asked);
  }

  return (id) => {
    const text = idText(id);
    if (waiting.size >= mostAtOnce) flushAll();
    const known = waiting.get(text);
    if (known !== undefined) return known.promise;
    const one = Promise.withResolvers<StoredRow | undefined>();
    waiting.set(text, one);
    // What others ask for in this turn goes along.
    if (waiting.size === 1) queueMicrotask(flush);
    return one.promise;
  };

  function flushAll(): void {
    const asked = waiting;
    waiting = new Map();
    void ask(asked);
  }
}
