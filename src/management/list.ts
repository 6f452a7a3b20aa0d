// The one list helper: pages by number, with or without totals, and pages after a cursor.
import { z } from 'zod';
import { apiError } from './errors.ts';
import { flag } from './fields.ts';

/** What a list is read from. */
export interface ListSource {
  /** One page by number, counted from 0. @returns with `total`, how many there are on all pages. */
  page(page: { page: number; perPage: number }): Promise<{ items: readonly object[]; total: number }>;
  /** At most `take` after the cursor, from the beginning without one. @returns with `next` where more follow. */
  after(page: {
    cursor?: string | undefined;
    take: number;
  }): Promise<{ items: readonly object[]; next?: string | undefined }>;
}

/** How a list is paged and wrapped. */
export interface ListShape {
  /** The member that holds the items of a wrapped answer. */
  key: string;
  /** Items of a page where the query does not say; 50. */
  perPage?: number;
  /** Whether it can be read by a cursor, where its query has one; it can. */
  isByCursor?: boolean;
  /** Whether a wrapped page says how many there are in all; it does otherwise. */
  hasTotal?: boolean;
  /** Whether a wrapped page says `length`, too. */
  hasLength?: boolean;
  /** The most records that can be paged by number: users 1,000. */
  reach?: number;
}

const whole = z
  .string()
  .regex(/^\d{1,9}$/, 'Expected type integer')
  .transform(Number);

/** The query members of every list. */
export const pageQuery = {
  page: whole.optional(),
  per_page: whole.refine((count) => count <= 100, 'Value must be at most 100').optional(),
  include_totals: flag.optional(),
};

/** Those of a list that a cursor can read. */
export const cursorQuery = {
  from: z.string().max(1024).optional(),
  take: whole.refine((count) => count >= 1 && count <= 1000, 'Value must be between 1 and 1000').optional(),
};

export interface PageQuery {
  page?: number | undefined;
  per_page?: number | undefined;
  include_totals?: boolean | undefined;
  from?: string | undefined;
  take?: number | undefined;
}

/**
 * The answer of a list. A page beyond the end is empty; `take` or `from` gives the cursor's form, whatever
 * `include_totals` says, because clients send both and read that one.
 * @throws AuthError 400 beyond what can be paged by number.
 */
export async function listAnswer(query: PageQuery, source: ListSource, shape: ListShape): Promise<unknown> {
  const { key, perPage: usual = 50, isByCursor = true, hasLength = false, hasTotal = true, reach } = shape;
  if (isByCursor && (query.take !== undefined || query.from !== undefined)) {
    const { items, next } = await source.after({ cursor: query.from, take: query.take ?? 50 });
    return { [key]: items, ...(next === undefined ? {} : { next }) };
  }
  const { page = 0, per_page: perPage = usual } = query;
  const start = page * perPage;
  if (reach !== undefined && start + perPage > reach && start > 0) {
    throw apiError(400, `You can only page through the first ${reach} records.`, 'invalid_paging');
  }
  const { items, total } = perPage === 0 ? await countOf(source) : await source.page({ page, perPage });
  if (query.include_totals !== true) return items;
  return {
    start,
    limit: perPage,
    ...(hasLength ? { length: items.length } : {}),
    ...(hasTotal ? { total } : {}),
    [key]: items,
  };
}

/** {@link listAnswer} of items that are held in memory. @param idOf what a cursor names an item by. */
export function arrayAnswer<T extends object>(
  query: PageQuery,
  items: readonly T[],
  idOf: (item: T) => string,
  shape: ListShape,
): Promise<unknown> {
  return listAnswer(query, arraySource(items, idOf), shape);
}

/** `per_page=0`: only how many there are. */
async function countOf(source: ListSource): Promise<{ items: readonly object[]; total: number }> {
  const { total } = await source.page({ page: 0, perPage: 1 });
  return { items: [], total };
}

/**
 * A list that is held in memory.
 * @param idOf what a cursor names an item by; items are in its order.
 */
export function arraySource<T extends object>(items: readonly T[], idOf: (item: T) => string): ListSource {
  return {
    page: async ({ page, perPage }) => ({
      items: items.slice(page * perPage, (page + 1) * perPage),
      total: items.length,
    }),
    after: async ({ cursor, take }) => {
      const sorted = [...items].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
      const after = cursor === undefined ? undefined : cursorId(cursor);
      const rest = after === undefined ? sorted : sorted.filter((item) => idOf(item) > after);
      const chosen = rest.slice(0, take);
      const last = chosen.at(-1);
      return {
        items: chosen,
        next: rest.length > take && last !== undefined ? cursorOf(idOf(last)) : undefined,
      };
    },
  };
}

/** A cursor names the last item that was given; clients take it as it is. */
export function cursorOf(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/** The id that a cursor names. @throws AuthError 400 for what is no cursor. */
export function cursorId(cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').toString();
  if (id === '' || cursorOf(id) !== cursor)
    throw apiError(400, 'The "from" parameter is invalid.', 'invalid_query_string');
  return id;
}

/** A list whose items are answered in another form. */
export function mapped<T extends object>(source: ListSource, view: (item: T) => object): ListSource {
  const shown = (items: readonly object[]) => items.map((item) => view(item as T));
  return {
    page: async (page) => {
      const found = await source.page(page);
      return { ...found, items: shown(found.items) };
    },
    after: async (page) => {
      const found = await source.after(page);
      return { ...found, items: shown(found.items) };
    },
  };
}
