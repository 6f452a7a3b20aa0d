// Reads pages of a list, however the Management API pages it.
import type { CallRules } from '../../management/call.ts';
import { isObject } from '../../management/section.ts';
import { hidden } from './secrets.ts';

export type Item = Record<string, unknown>;

/** The requested part of a list. */
export interface AskedList {
  /** By the names of the call's query parameters. */
  filters: Readonly<Record<string, string>>;
  /** A text that records must contain, for lists that cannot be searched by the API. */
  text: string;
  /** The member to sort by. */
  sort: string;
  isDescending: boolean;
  /** Counted from 0. */
  page: number;
  /** The cursor at which the page begins, for lists that are paged by cursors. */
  from: string | undefined;
}

/** A page of a list. */
export interface FoundPage {
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
const MOST = 1000;
/** The number of records per call. */
const BATCH = 100;

/** Query parameters that select a page. */
const PAGING = ['page', 'per_page', 'from', 'take', 'fields'];

/** Query parameters that affect the form of the answer rather than the selection of records. */
const MANNERS = [
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
    (name) => ![...PAGING, ...MANNERS].includes(name) && !name.startsWith('include_'),
  );

/** Returns the requested page of a list. @param read runs the call with a query. */
export async function findPage(call: CallRules, asked: AskedList, read: Read): Promise<FoundPage> {
  const takes = (name: string) => Object.hasOwn(call.query?.shape ?? {}, name);
  if (asked.text !== '' || asked.sort !== '') return inMemory(takes, asked, read);
  const query = { ...asked.filters, ...pageQuery(takes, asked, PER_PAGE) };
  const { items, total, next, isPage } = listOf(await read(query));
  if (items.length > PER_PAGE) return slice(items, asked.page, false);
  const last = (asked.page + 1) * PER_PAGE;
  return {
    items,
    total,
    next,
    hasMore: next !== undefined || (total === undefined ? isPage && items.length === PER_PAGE : total > last),
    isPartial: false,
  };
}

function pageQuery(
  takes: (name: string) => boolean,
  { page, from }: Pick<AskedList, 'page' | 'from'>,
  size: number,
): Query {
  if (takes('take') && (from !== undefined || !takes('per_page')))
    return { take: String(size), ...(from !== undefined && { from }) };
  return {
    ...(takes('page') && { page: String(page) }),
    ...(takes('per_page') && { per_page: String(size) }),
    ...(takes('include_totals') && { include_totals: 'true' }),
  };
}

/** Reads up to {@link MOST} records and searches and sorts them here. */
async function inMemory(takes: (name: string) => boolean, asked: AskedList, read: Read): Promise<FoundPage> {
  const all: Item[] = [];
  let from: string | undefined;
  let isPartial = false;
  for (let page = 0; ; page += 1) {
    const query = { ...asked.filters, ...pageQuery(takes, { page, from }, BATCH) };
    const { items, total, next, isPage } = listOf(await read(query));
    all.push(...items);
    from = next;
    const isLast = total === undefined ? !isPage || items.length < BATCH : total <= all.length;
    const isEnd = items.length === 0 || (next === undefined && isLast);
    isPartial = !isEnd && all.length >= MOST;
    if (isEnd || isPartial) break;
  }
  const text = asked.text.toLowerCase();
  const chosen = all.filter((item) => JSON.stringify(hidden(item)).toLowerCase().includes(text));
  const sorted = asked.sort === '' ? chosen : chosen.sort(byMember(asked.sort, asked.isDescending));
  return slice(sorted, asked.page, isPartial);
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

function slice(items: readonly Item[], page: number, isPartial: boolean): FoundPage {
  const end = (page + 1) * PER_PAGE;
  return {
    items: items.slice(page * PER_PAGE, end),
    total: items.length,
    hasMore: items.length > end,
    isPartial,
  };
}

/** The answer of a list, in a common form. */
interface Listed {
  items: Item[];
  total?: number | undefined;
  next?: string | undefined;
  /** Whether the answer states that it is one page of several. */
  isPage: boolean;
}

/** Reads the answer of a list. */
export function listOf(body: unknown): Listed {
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
