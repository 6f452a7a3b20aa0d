// Reads the query of a console page.
import type { Context } from 'koa';

/** Returns a parameter: the last one where it is repeated, an empty string where it is missing. */
export function queryText(ctx: Context, name: string): string {
  return [ctx.query[name] ?? ''].flat().at(-1) ?? '';
}

/** Parses a page number of at most six digits; 0 for anything else. */
export function pageNumber(text: string): number {
  return /^\d{1,6}$/.test(text) ? Number(text) : 0;
}
