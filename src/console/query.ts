// What the address of a page of the console asks for.
import type { Context } from 'koa';

/** A text of the query: the last, where it is repeated; empty where there is none. */
export function queryText(ctx: Context, name: string): string {
  return [ctx.query[name] ?? ''].flat().at(-1) ?? '';
}

/** The number of a page, as far as pages are counted; 0 for what is none. */
export function pageNumber(text: string): number {
  return /^\d{1,6}$/.test(text) ? Number(text) : 0;
}
