// All records of a list that is small enough for that.
import type { Context } from 'koa';
import { type AskDependencies, ask } from '../ask.ts';
import type { AtConsole } from '../page.ts';
import { type Item, listOf } from '../resources/find.ts';

/** So many are read; a page with more of them would be none to look through. */
const MOST = 500;

/**
 * The records of a list that is paged by number, as many as a page can show.
 * @param name of the call. @param query of the call, paging apart.
 */
export async function allOf(
  deps: AskDependencies,
  ctx: Context,
  here: AtConsole,
  name: string,
  query: Readonly<Record<string, string>> = {},
): Promise<Item[]> {
  const all: Item[] = [];
  for (let page = 0; all.length < MOST; page += 1) {
    const paging = { page: String(page), per_page: '100', include_totals: 'true' };
    const { body } = await ask(deps, ctx, here, name, { query: { ...query, ...paging } });
    const { items, total = 0 } = listOf(body);
    all.push(...items);
    if (items.length === 0 || all.length >= total) break;
  }
  return all;
}
