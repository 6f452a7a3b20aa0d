// The page of a list.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import type { CallRules } from '../../management/call.ts';
import { ask } from '../ask.ts';
import type { ConsoleSession } from '../page.ts';
import { pageNumber, queryText } from '../query.ts';
import { renderConsole } from '../render.ts';
import { type Place, titleOf } from './declared.ts';
import { queryFieldsOf } from './fields.ts';
import { type AskedList, type FoundPage, filterNames, findPage, type Item, PER_PAGE } from './find.ts';
import {
  crumbsOf,
  homeOf,
  labelOf,
  operationLinks,
  type Places,
  paramsOf,
  paramsOfItem,
  type ResourcesDependencies,
  sectionOf,
  translated,
} from './model.ts';
import { nameOfCall, type Params, pageOf } from './operations.ts';
import { cellOf, columnsOf } from './shown.ts';
import { filledFields } from './values.ts';

/** Filters by which the API searches a list for a text. */
const SEARCHES = ['q', 'name_filter', 'search', 'identifier'];

interface At {
  places: Places;
  place: Place;
  read: CallRules;
}

/** Shows the page of a list that the query asks for. */
export async function showList(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  at: At,
): Promise<void> {
  const { places, place, read } = at;
  const params = paramsOf(ctx);
  const names = filterNames(read);
  const fields =
    read.query === undefined ? [] : queryFieldsOf(read.query).filter(({ path }) => names.includes(path));
  const asked = askedOf(ctx, names);
  const isMissing = fields.some(({ path, isRequired }) => isRequired && asked.filters[path] === undefined);
  const found = isMissing ? NOTHING : await pageAsked(deps, ctx, session, { ...at, asked });
  const operations = operationLinks(session, place, params);
  await renderConsole(deps, ctx, session, {
    template: 'console/resources-list',
    section: sectionOf(place),
    title: translated(deps, ctx, 'title', titleOf(place.path)),
    model: {
      heading: titleOf(place.path),
      crumbs: crumbsOf(places, place.path, params),
      at: pageOf(place.path, params),
      filters: filledFields(fields, asked.filters),
      hasFilter: Object.keys(asked.filters).length > 0 || asked.text !== '',
      isSearchable: !names.some((name) => SEARCHES.includes(name)),
      text: asked.text,
      isMissing,
      operations,
      fault: found.fault,
      isLost: found.isLost === true,
      isPartial: found.isPartial,
      ...tableOf(session, at, { asked, found, params }),
      ...pagesOf(pageOf(place.path, params), asked, found),
    },
    status: found.fault === undefined && found.isLost !== true ? 200 : 400,
  });
}

/** A page with the API's refusal of the query, or of the place in the list. */
type Found = FoundPage & { fault?: string; isLost?: true };
const NOTHING: Found = { items: [], hasMore: false, isPartial: false };

/** Returns the requested page, or the API's refusal of the query. */
async function pageAsked(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  { read, asked }: At & { asked: AskedList },
): Promise<Found> {
  try {
    return await findPage(read, asked, async (query) => {
      const answer = await ask(deps, ctx, session, nameOfCall(read), { params: paramsOf(ctx), query });
      return answer.body;
    });
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.status === 400)
      // The place came from a link of an earlier page: nothing that was entered here is wrong.
      return {
        ...NOTHING,
        ...(asked.from === undefined ? { fault: thrown.error_description } : { isLost: true }),
      };
    throw thrown;
  }
}

function askedOf(ctx: Context, names: readonly string[]): AskedList {
  const one = (name: string) => queryText(ctx, name);
  const filters = names.map((name) => [name, one(name)] as const).filter(([, value]) => value !== '');
  const page = Math.max(pageNumber(one('page')) - 1, 0);
  return {
    filters: Object.fromEntries(filters),
    text: one('text').slice(0, 200),
    sort: one('by').slice(0, 100),
    isDescending: one('order') === 'down',
    page,
    from: one('from') || undefined,
  };
}

/** Returns the address of the same list with other parameters. */
function hrefOf(at: string, asked: AskedList, more: Record<string, string | undefined>): string {
  const { filters, text, sort, isDescending } = asked;
  const all: Record<string, string | undefined> = {
    ...filters,
    text,
    by: sort,
    order: sort !== '' && isDescending ? 'down' : '',
    ...more,
  };
  const given = Object.entries(all).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return given.length === 0 ? at : `${at}?${new URLSearchParams(given)}`;
}

function tableOf(
  session: ConsoleSession,
  { places, place, read }: At,
  { asked, found, params }: { asked: AskedList; found: Found; params: Params },
) {
  const child = homeOf(places, place);
  const home = child === undefined ? undefined : places.get(child);
  const at = pageOf(place.path, params);
  const hasOwnOrder = filterNames(read).includes('sort');
  const rows = found.items.map((item) => rowOf(session, item, { child, home, params }));
  const isSaid = (name: string) =>
    rows.every(({ item, label, id }) => [undefined, label, id].includes(item[name] as string | undefined));
  const names = columnsOf(found.items, isSaid);
  return {
    isSortable: !hasOwnOrder && found.items.length > 0,
    columns: names.map((name) => {
      const isSorted = asked.sort === name;
      const order = isSorted && !asked.isDescending ? 'down' : undefined;
      const direction = asked.isDescending ? 'descending' : 'ascending';
      return { name, href: hrefOf(at, asked, { by: name, order }), direction: isSorted ? direction : 'none' };
    }),
    rows: rows.map(({ item, ...row }) => ({ ...row, cells: names.map((name) => cellOf(item, name)) })),
  };
}

function rowOf(
  session: ConsoleSession,
  item: Item,
  { child, home, params }: { child: string | undefined; home: Place | undefined; params: Params },
) {
  const own = child === undefined ? undefined : paramsOfItem(item, child, params);
  const id = own === undefined ? '' : (Object.values(own).at(-1) ?? '');
  const label = labelOf(item, id);
  const opens = own !== undefined && home?.read !== undefined;
  return {
    item,
    id: id === label ? '' : id,
    label,
    href: opens ? pageOf(home.path, own) : undefined,
    operations: opens || own === undefined || home === undefined ? [] : operationLinks(session, home, own),
  };
}

function pagesOf(at: string, asked: AskedList, { items, total, next, hasMore }: Found) {
  const { page, from } = asked;
  const first = page * PER_PAGE;
  return {
    ...(from === undefined && items.length > 0 && { first: first + 1, last: first + items.length }),
    total,
    count: total ?? items.length,
    previous: page > 0 ? hrefOf(at, asked, { page: page > 1 ? String(page) : undefined }) : undefined,
    beginning: from === undefined ? undefined : hrefOf(at, asked, {}),
    next: hasMore
      ? hrefOf(at, asked, next === undefined ? { page: String(page + 2) } : { from: next })
      : undefined,
  };
}
