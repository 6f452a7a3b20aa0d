// Finding the records of a list, whatever way it is paged by the Management API.
import type { CallRules } from '../../management/call.ts';
import { isObject } from '../../management/section.ts';
import { hidden } from './secrets.ts';

export type Item = Record<string, unknown>;

/** What of a list is asked for. */
export interface AskedList {
  /** By the names of the call's own query. */
  filters: Readonly<Record<string, string>>;
  /** Text that is somewhere in a record, where the list itself cannot be searched. */
  text: string;
  /** The member that the records are sorted by. */
  sort: string;
  isDescending: boolean;
  /** Counted from 0. */
  page: number;
  /** Where a page begins that is read by a cursor. */
  from: string | undefined;
}

/** One page of a list. */
export interface FoundPage {
  items: readonly Item[];
  /** How many there are in all, where that is known. */
  total?: number | undefined;
  /** Where the next page begins, of a list that is read by a cursor. */
  next?: string | undefined;
  hasMore: boolean;
  /** Whether there are more than were looked through. */
  isPartial: boolean;
}

type Query = Readonly<Record<string, string>>;
type Read = (query: Query) => Promise<unknown>;

export const PER_PAGE = 25;
/** So many records are looked through where the list itself can neither be searched nor sorted. */
const MOST = 1000;
/** So many at once. */
const BATCH = 100;

/** Names of a query that say which page is meant. */
const PAGING = ['page', 'per_page', 'from', 'take', 'fields'];

/** Names of a query that say how it is answered, and not which records are meant. */
const MANNERS = [
  'hydrate',
  'synchronous',
  'search_engine',
  'primary_order',
  'consider_brute_force_enablement',
];

/** The names of a list's own filters. What begins with `include_` says what is told of a record, and not which are meant. */
export const filterNames = ({ query }: CallRules): string[] =>
  Object.keys(query?.shape ?? {}).filter(
    (name) => ![...PAGING, ...MANNERS].includes(name) && !name.startsWith('include_'),
  );

/** The page of a list that is asked for. @param read asks the call. */
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

/** All records, as far as they are looked through, searched and sorted here. */
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
    // Of an object as JSON: it may have a member `toString` of its own, which a stranger chose.
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

/** What a list answered, in whichever form it does. */
interface Listed {
  items: Item[];
  total?: number | undefined;
  next?: string | undefined;
  /** Whether it says of itself that it is a page of more, whether or not it counts them. */
  isPage: boolean;
}

/** The records of a list's answer. */
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

/** Whether an answer is a list of records, rather than one. */
export const isListOfRecords = (body: unknown): boolean =>
  Array.isArray(body) && body.length > 0 && body.every(isObject);
