// Reads pages of a list, however the Management API pages it.
import type { CallRules } from '../../management/call.ts';
import { isObject } from '../../management/section.ts';
import { maskSecrets } from './console-resource-secrets.ts';

export type Item = Record<string, unknown>;

export interface ListRequest {
  /** By the names of the call's query parameters. */
  filters: Readonly<Record<string, string>>;
  /** A text that records must contain, for lists that cannot be searched by the API. */
  text: string;
  sort: string;
  isDescending: boolean;
  /** Counted from 0. */
  page: number;
  /** The cursor at which the page begins, for lists that are paged by cursors. */
  from: string | undefined;
}

export interface ListPage {
  items: readonly Item[];
  /** The number of all records, if known. */
  total?: number | undefined;
  /** The cursor of the next page, for lists that are paged by cursors. */
  next?: string | undefined;
  hasMore: boolean;
  /** Whether more records exist than were searched. */
  isPartial: boolean;
}

type Query = Readonly<Record<string, string>>;
type Read = (query: Query) => Promise<unknown>;

export const PER_PAGE = 25;
/** The maximum number of records that are read when a list must be searched or sorted here. */
const MAX_RECORDS = 1000;
/** The number of records per call. */
const BATCH_SIZE = 100;

/** Query parameters that select a page. */
const PAGING = ['page', 'per_page', 'from', 'take', 'fields'];

/** Query parameters that affect the form of the answer rather than the selection of records. */
const FORMAT_PARAMETERS = [
  'hydrate',
  'synchronous',
  'search_engine',
  'primary_order',
  'consider_brute_force_enablement',
];

/**
 * Returns the names of a list's filters. Parameters named `include_…` select members of the answer, so they are left
 * out.
 */
export const filterNames = ({ query }: CallRules): string[] =>
  Object.keys(query?.shape ?? {}).filter(
    (name) => ![...PAGING, ...FORMAT_PARAMETERS].includes(name) && !name.startsWith('include_'),
  );

/** @param read runs the call with a query. */
export async function findPage(call: CallRules, request: ListRequest, read: Read): Promise<ListPage> {
  const accepts = (name: string) => Object.hasOwn(call.query?.shape ?? {}, name);
  if (request.text !== '' || request.sort !== '') return findInMemory(accepts, request, read);
  const query = { ...request.filters, ...pageQuery(accepts, request, PER_PAGE) };
  const { items, total, next, isPage } = listOf(await read(query));
  if (items.length > PER_PAGE) return pageOfItems(items, request.page, false);
  const last = (request.page + 1) * PER_PAGE;
  return {
    items,
    total,
    next,
    hasMore: next !== undefined || (total === undefined ? isPage && items.length === PER_PAGE : total > last),
    isPartial: false,
  };
}

function pageQuery(
  accepts: (name: string) => boolean,
  { page, from }: Pick<ListRequest, 'page' | 'from'>,
  size: number,
): Query {
  if (accepts('take') && (from !== undefined || !accepts('per_page')))
    return { take: String(size), ...(from !== undefined && { from }) };
  return {
    ...(accepts('page') && { page: String(page) }),
    ...(accepts('per_page') && { per_page: String(size) }),
    ...(accepts('include_totals') && { include_totals: 'true' }),
  };
}

/** Reads up to {@link MAX_RECORDS} records and searches and sorts them here. */
async function findInMemory(
  accepts: (name: string) => boolean,
  request: ListRequest,
  read: Read,
): Promise<ListPage> {
  const all: Item[] = [];
  let from: string | undefined;
  let isPartial = false;
  for (let page = 0; ; page += 1) {
    const query = { ...request.filters, ...pageQuery(accepts, { page, from }, BATCH_SIZE) };
    const { items, total, next, isPage } = listOf(await read(query));
    all.push(...items);
    from = next;
    const isLast = total === undefined ? !isPage || items.length < BATCH_SIZE : total <= all.length;
    const isEnd = items.length === 0 || (next === undefined && isLast);
    isPartial = !isEnd && all.length >= MAX_RECORDS;
    if (isEnd || isPartial) break;
  }
  const text = request.text.toLowerCase();
  const chosen = all.filter((item) => JSON.stringify(maskSecrets(item)).toLowerCase().includes(text));
  const sorted = request.sort === '' ? chosen : chosen.sort(byMember(request.sort, request.isDescending));
  return pageOfItems(sorted, request.page, isPartial);
}

function byMember(name: string, isDescending: boolean): (a: Item, b: Item) => number {
  const collator = new Intl.Collator('en', { numeric: true });
  const text = (item: Item) => {
    const value = item[name] ?? '';
    // Objects are compared as JSON: one may have a member `toString` that a stranger chose.
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  };
  return (a, b) => collator.compare(text(a), text(b)) * (isDescending ? -1 : 1);
}

function pageOfItems(items: readonly Item[], page: number, isPartial: boolean): ListPage {
  const end = (page + 1) * PER_PAGE;
  return {
    items: items.slice(page * PER_PAGE, end),
    total: items.length,
    hasMore: items.length > end,
    isPartial,
  };
}

interface ListAnswer {
  items: Item[];
  total?: number | undefined;
  next?: string | undefined;
  /** Whether the answer states that it is one page of several. */
  isPage: boolean;
}

export function listOf(body: unknown): ListAnswer {
  if (Array.isArray(body)) return { items: body.filter(isObject), isPage: false };
  if (!isObject(body)) return { items: [], isPage: false };
  const items = Object.values(body).find((value) => Array.isArray(value)) as unknown[] | undefined;
  const { total, next, start } = body;
  return {
    items: (items ?? []).filter(isObject),
    ...(typeof total === 'number' && { total }),
    ...(typeof next === 'string' && { next }),
    isPage: typeof start === 'number',
  };
}

/** Reports whether an answer is a non-empty list of records. */
export const isListOfRecords = (body: unknown): boolean =>
  Array.isArray(body) && body.length > 0 && body.every(isObject);
