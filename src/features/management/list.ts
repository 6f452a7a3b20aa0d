// Paging of lists: by page number, with or without totals, and by cursor.
import { z } from 'zod';
import { apiError } from './management-errors.ts';
import { flag } from './management-fields.ts';

export interface ListSource {
  /** Returns one page by its number, counted from 0. @returns `total` counts the items of all pages. */
  page(page: { page: number; perPage: number }): Promise<{ items: readonly object[]; total: number }>;
  /**
   * Returns at most `take` items after the cursor; without one, the first.
   * @returns `next` is set if more follow.
   */
  after(page: {
    cursor?: string | undefined;
    take: number;
  }): Promise<{ items: readonly object[]; next?: string | undefined }>;
}

export interface ListShape {
  /** The member that holds the items of a wrapped answer. */
  key: string;
  /** Items on a page if the query does not say. Default: 50. */
  perPage?: number;
  /** Whether the list can be read by cursor. Default: true. */
  isByCursor?: boolean;
  // docs/understand/decisions/management-api.md#a-list-that-the-newest-clients-know-only-as-an-object-is-always-one
  /** Whether the list is read by cursor alone: its answer is then always wrapped. */
  isCursorOnly?: boolean;
  /** Whether a wrapped page has `total`. Default: true. */
  hasTotal?: boolean;
  /** Whether a wrapped page has `length`. */
  hasLength?: boolean;
  /** The number of records that paging by number reaches; for users 1,000. Default: no limit. */
  reach?: number;
}

const integer = z
  .string()
  .regex(/^\d{1,9}$/, 'Expected type integer')
  .transform(Number);

export const pageQuery = {
  page: integer.optional(),
  per_page: integer.refine((count) => count <= 100, 'Value must be at most 100').optional(),
  include_totals: flag.optional(),
};

/**
 * The query parameters of a list that can be read by cursor. Published clients send `include_totals` with every list, also
 * with those that are always wrapped.
 */
export const cursorQuery = {
  include_totals: flag.optional(),
  from: z.string().max(1024).optional(),
  take: integer.refine((count) => count >= 1 && count <= 1000, 'Value must be between 1 and 1000').optional(),
};

export interface PageQuery {
  page?: number | undefined;
  per_page?: number | undefined;
  include_totals?: boolean | undefined;
  from?: string | undefined;
  take?: number | undefined;
}

/**
 * Returns the response of a list. A page beyond the end is empty. `take` or `from` selects paging by cursor even if
 * `include_totals` is set: clients that send both expect the cursor's form.
 * @throws AuthError 400 for a page beyond `reach`, or a cursor that is not valid
 */
export async function listAnswer(query: PageQuery, source: ListSource, shape: ListShape): Promise<unknown> {
  const {
    key,
    perPage: defaultPerPage = 50,
    isByCursor = true,
    isCursorOnly = false,
    hasLength = false,
    hasTotal = true,
    reach,
  } = shape;
  if (isCursorOnly || (isByCursor && (query.take !== undefined || query.from !== undefined))) {
    const { items, next } = await source.after({ cursor: query.from, take: query.take ?? 50 });
    return { [key]: items, ...(next === undefined ? {} : { next }) };
  }
  const { page = 0, per_page: perPage = defaultPerPage } = query;
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

/** {@link listAnswer} of items in memory. @param idOf returns the id by which a cursor names an item. */
export function arrayAnswer<T extends object>(
  query: PageQuery,
  items: readonly T[],
  idOf: (item: T) => string,
  shape: ListShape,
): Promise<unknown> {
  return listAnswer(query, arraySource(items, idOf), shape);
}

/** `per_page=0` asks for the count alone. */
async function countOf(source: ListSource): Promise<{ items: readonly object[]; total: number }> {
  const { total } = await source.page({ page: 0, perPage: 1 });
  return { items: [], total };
}

/**
 * Returns a list source of items in memory.
 * @param idOf returns the id by which a cursor names an item; paging by cursor sorts by it.
 */
export function arraySource<T extends object>(items: readonly T[], idOf: (item: T) => string): ListSource {
  return {
    page: async ({ page, perPage }) => ({
      items: items.slice(page * perPage, (page + 1) * perPage),
      total: items.length,
    }),
    after: async ({ cursor, take }) => {
      const sorted = [...items].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
      const afterId = cursor === undefined ? undefined : cursorId(cursor);
      const rest = afterId === undefined ? sorted : sorted.filter((item) => idOf(item) > afterId);
      const pageItems = rest.slice(0, take);
      const last = pageItems.at(-1);
      return {
        items: pageItems,
        next: rest.length > take && last !== undefined ? cursorOf(idOf(last)) : undefined,
      };
    },
  };
}

/** Returns the cursor that points after an item. Clients treat it as opaque. */
export function cursorOf(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/** Returns the id that a cursor contains. @throws AuthError 400 if it is not a cursor. */
export function cursorId(cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').toString();
  if (id === '' || cursorOf(id) !== cursor)
    throw apiError(400, 'The "from" parameter is invalid.', 'invalid_query_string');
  return id;
}

export function mapped<T extends object>(source: ListSource, view: (item: T) => object): ListSource {
  const views = (items: readonly object[]) => items.map((item) => view(item as T));
  return {
    page: async (page) => {
      const found = await source.page(page);
      return { ...found, items: views(found.items) };
    },
    after: async (page) => {
      const found = await source.after(page);
      return { ...found, items: views(found.items) };
    },
  };
}
