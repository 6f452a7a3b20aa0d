// The page of a list.
import type { Context } from 'koa';
import { AuthError } from '../../../http/errors.ts';
import type { CallRules } from '../../management/call.ts';
import { callApi } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';
import { pageNumber, queryText } from '../query.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { queryFieldsOf } from './console-resource-fields.ts';
import { type Place, titleOf } from './declared.ts';
import { filterNames, findPage, type Item, type ListPage, type ListRequest, PER_PAGE } from './find.ts';
import {
  crumbsOf,
  homeOf,
  type Link,
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
import { cellOf, columnsOf, type ShownMember } from './shown.ts';
import { type FilledField, filledFields } from './values.ts';

/** Filters by which the API searches a list for a text. */
const SEARCHES = ['q', 'name_filter', 'search', 'identifier'];

interface ListTarget {
  places: Places;
  place: Place;
  read: CallRules;
}

interface ResourcesListModel {
  heading: string;
  crumbs: Link[];
  at: string;
  filters: FilledField[];
  hasFilter: boolean;
  isSearchable: boolean;
  text: string;
  isMissing: boolean;
  operations: Link[];
  fault: string | undefined;
  isLost: boolean;
  isPartial: boolean;
  isSortable: boolean;
  columns: { name: string; href: string; direction: string }[];
  rows: { cells: ShownMember[]; id: string; label: string; href: string | undefined; operations: Link[] }[];
  first?: number;
  last?: number;
  total: number | undefined;
  count: number;
  previous: string | undefined;
  beginning: string | undefined;
  next: string | undefined;
}

export const RESOURCES_LIST_PAGE = declareConsolePage<ResourcesListModel>('console/resources-list');

export async function showList(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  target: ListTarget,
): Promise<void> {
  const { places, place, read } = target;
  const params = paramsOf(ctx);
  const names = filterNames(read);
  const fields =
    read.query === undefined ? [] : queryFieldsOf(read.query).filter(({ path }) => names.includes(path));
  const request = requestOf(ctx, names);
  const isMissing = fields.some(({ path, isRequired }) => isRequired && request.filters[path] === undefined);
  const found = isMissing ? EMPTY_PAGE : await requestedPage(deps, ctx, session, { ...target, request });
  const operations = operationLinks(session, place, params);
  await renderConsole(deps, ctx, session, {
    page: RESOURCES_LIST_PAGE,
    section: sectionOf(place),
    title: translated(deps, ctx, 'title', titleOf(place.path)),
    model: {
      heading: titleOf(place.path),
      crumbs: crumbsOf(places, place.path, params),
      at: pageOf(place.path, params),
      filters: filledFields(fields, request.filters),
      hasFilter: Object.keys(request.filters).length > 0 || request.text !== '',
      isSearchable: !names.some((name) => SEARCHES.includes(name)),
      text: request.text,
      isMissing,
      operations,
      fault: found.fault,
      isLost: found.isLost === true,
      isPartial: found.isPartial,
      ...tableOf(session, target, { request, found, params }),
      ...pagesOf(pageOf(place.path, params), request, found),
    },
    status: found.fault === undefined && found.isLost !== true ? 200 : 400,
  });
}

/** A page with the API's refusal of the query, or of the place in the list. */
type FoundList = ListPage & { fault?: string; isLost?: true };
const EMPTY_PAGE: FoundList = { items: [], hasMore: false, isPartial: false };

/** Returns the requested page, or the API's refusal of the query. */
async function requestedPage(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  { read, request }: ListTarget & { request: ListRequest },
): Promise<FoundList> {
  try {
    return await findPage(read, request, async (query) => {
      const answer = await callApi(deps, ctx, session, nameOfCall(read), { params: paramsOf(ctx), query });
      return answer.body;
    });
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.status === 400)
      // The place came from a link of an earlier page: nothing that was entered here is wrong.
      return {
        ...EMPTY_PAGE,
        ...(request.from === undefined ? { fault: thrown.error_description } : { isLost: true }),
      };
    throw thrown;
  }
}

function requestOf(ctx: Context, names: readonly string[]): ListRequest {
  const param = (name: string) => queryText(ctx, name);
  const filters = names.map((name) => [name, param(name)] as const).filter(([, value]) => value !== '');
  const page = Math.max(pageNumber(param('page')) - 1, 0);
  return {
    filters: Object.fromEntries(filters),
    text: param('text').slice(0, 200),
    sort: param('by').slice(0, 100),
    isDescending: param('order') === 'down',
    page,
    from: param('from') || undefined,
  };
}

/** Returns the address of the same list with other parameters. */
function hrefOf(at: string, request: ListRequest, changes: Record<string, string | undefined>): string {
  const { filters, text, sort, isDescending } = request;
  const all: Record<string, string | undefined> = {
    ...filters,
    text,
    by: sort,
    order: sort !== '' && isDescending ? 'down' : '',
    ...changes,
  };
  const parameters = Object.entries(all).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return parameters.length === 0 ? at : `${at}?${new URLSearchParams(parameters)}`;
}

function tableOf(
  session: ConsoleSession,
  { places, place, read }: ListTarget,
  { request, found, params }: { request: ListRequest; found: FoundList; params: Params },
) {
  const child = homeOf(places, place);
  const home = child === undefined ? undefined : places.get(child);
  const at = pageOf(place.path, params);
  const hasOwnOrder = filterNames(read).includes('sort');
  const rows = found.items.map((item) => rowOf(session, item, { child, home, params }));
  const isShownElsewhere = (name: string) =>
    rows.every(({ item, label, id }) => [undefined, label, id].includes(item[name] as string | undefined));
  const names = columnsOf(found.items, isShownElsewhere);
  return {
    isSortable: !hasOwnOrder && found.items.length > 0,
    columns: names.map((name) => {
      const isSorted = request.sort === name;
      const order = isSorted && !request.isDescending ? 'down' : undefined;
      const direction = request.isDescending ? 'descending' : 'ascending';
      return {
        name,
        href: hrefOf(at, request, { by: name, order }),
        direction: isSorted ? direction : 'none',
      };
    }),
    rows: rows.map(({ item, ...row }) => ({ ...row, cells: names.map((name) => cellOf(item, name)) })),
  };
}

function rowOf(
  session: ConsoleSession,
  item: Item,
  { child, home, params }: { child: string | undefined; home: Place | undefined; params: Params },
) {
  const itemParams = child === undefined ? undefined : paramsOfItem(item, child, params);
  const id = itemParams === undefined ? '' : (Object.values(itemParams).at(-1) ?? '');
  const label = labelOf(item, id);
  const hasPage = itemParams !== undefined && home?.read !== undefined;
  return {
    item,
    id: id === label ? '' : id,
    label,
    href: hasPage ? pageOf(home.path, itemParams) : undefined,
    operations:
      hasPage || itemParams === undefined || home === undefined
        ? []
        : operationLinks(session, home, itemParams),
  };
}

function pagesOf(at: string, request: ListRequest, { items, total, next, hasMore }: FoundList) {
  const { page, from } = request;
  const first = page * PER_PAGE;
  return {
    ...(from === undefined && items.length > 0 && { first: first + 1, last: first + items.length }),
    total,
    count: total ?? items.length,
    previous: page > 0 ? hrefOf(at, request, { page: page > 1 ? String(page) : undefined }) : undefined,
    beginning: from === undefined ? undefined : hrefOf(at, request, {}),
    next: hasMore
      ? hrefOf(at, request, next === undefined ? { page: String(page + 2) } : { from: next })
      : undefined,
  };
}
