// Reads all records of a short list.
import type { Context } from 'koa';
import { type ApiCallDependencies, callApi } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';
import { type Item, listOf } from '../resources/find.ts';

/** The maximum number of records that are read; a page with more would be unusable. */
const MAX_RECORDS = 500;

/**
 * Returns the records of a list that is paged by number, at most {@link MAX_RECORDS}, rounded up to whole pages.
 * @param name the call.
 * @param query its parameters other than paging.
 */
export async function listAll(
  deps: ApiCallDependencies,
  ctx: Context,
  session: ConsoleSession,
  name: string,
  query: Readonly<Record<string, string>> = {},
): Promise<Item[]> {
  const all: Item[] = [];
  for (let page = 0; all.length < MAX_RECORDS; page += 1) {
    const paging = { page: String(page), per_page: '100', include_totals: 'true' };
    const { body } = await callApi(deps, ctx, session, name, { query: { ...query, ...paging } });
    const { items, total = 0 } = listOf(body);
    all.push(...items);
    if (items.length === 0 || all.length >= total) break;
  }
  return all;
}
