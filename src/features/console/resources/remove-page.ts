// The page that asks for confirmation before something is deleted, and lists what is deleted with it.
import type { Context } from 'koa';
import { AuthError } from '../../../http/errors.ts';
import { isObject } from '../../management/section.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, redirectAfterForm } from '../console-page.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { parametersOf, placesBelow, titleOf } from './declared.ts';
import { filterNames, type Item, listOf } from './find.ts';
import type { PlaceOperation } from './form-page.ts';
import {
  crumbsOf,
  type Link,
  labelOf,
  type Places,
  paramsOf,
  type ResourcesDependencies,
  recordAt,
  sectionOf,
  translated,
} from './model.ts';
import { mayCall, nameOfCall, operationPath, type Params, pageOf } from './operations.ts';
import { placeAfter } from './submit-form.ts';

/** The ends of message keys that explain a deletion, by the path of the record. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  '/clients/:id': 'clients',
  '/resource-servers/:id': 'apis',
  '/connections/:id': 'connections',
  '/users/:id': 'users',
  '/roles/:id': 'roles',
  '/organizations/:id': 'organizations',
  '/client-grants/:id': 'grants',
  '/actions/actions/:id': 'actions',
};

/** Other lists whose records refer to a record, with the filters that find them. */
const REFERRING_LISTS: Readonly<Record<string, readonly { list: string; query(record: Item): Params }[]>> = {
  '/clients/:id': [
    { list: '/client-grants', query: ({ client_id }) => ({ client_id: String(client_id) }) },
    { list: '/grants', query: ({ client_id }) => ({ client_id: String(client_id) }) },
  ],
  '/resource-servers/:id': [
    { list: '/client-grants', query: ({ identifier }) => ({ audience: String(identifier) }) },
    { list: '/grants', query: ({ identifier }) => ({ audience: String(identifier) }) },
  ],
  '/connections/:id': [
    {
      list: '/users',
      query: ({ name }) => ({ q: `identities.connection:${JSON.stringify(String(name))}` }),
    },
  ],
};

/** A number of records that depend on the record. */
interface Dependent {
  href: string;
  text: string;
  count: number;
}

interface ResourcesRemoveModel {
  heading: string;
  label: string;
  crumbs: Link[];
  at: string;
  told: string | undefined;
  hanging: Dependent[];
  mayBeForced: boolean;
  fault: string | undefined;
  cancel: string;
}

export const RESOURCES_REMOVE_PAGE = declareConsolePage<ResourcesRemoveModel>('console/resources-remove');

/** Shows what is deleted, to be confirmed. */
export async function showRemoval(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  target: PlaceOperation,
  fault?: AuthError,
): Promise<void> {
  const { places, place, call } = target;
  const params = paramsOf(ctx);
  const record =
    place.kind === 'record' || place.kind === 'setting'
      ? await recordAt(deps, ctx, session, target)
      : undefined;
  const isRecord = place.kind === 'record' && isObject(record);
  await renderConsole(deps, ctx, session, {
    page: RESOURCES_REMOVE_PAGE,
    section: sectionOf(place),
    title: translated(deps, ctx, 'doing', call.summary),
    model: {
      heading: call.summary,
      label: labelOf(record, params[parametersOf(place.path).at(-1) ?? ''] ?? ''),
      crumbs: crumbsOf(places, `${place.path}/:end`, params),
      at: operationPath('remove', place.path, params),
      told: EXPLANATIONS[place.path] && `console.resources.goes.${EXPLANATIONS[place.path]}`,
      hanging: isRecord ? await dependentsOf(deps, ctx, session, { places, path: place.path, record }) : [],
      mayBeForced: call.query !== undefined && Object.hasOwn(call.query.shape, 'force'),
      fault: fault?.error_description,
      cancel: placeAfter(target, params),
    },
    status: fault?.status ?? 200,
  });
}

interface Removed {
  places: Places;
  path: string;
  record: Item;
}

/** Counts the records below a record and those that refer to it. */
async function dependentsOf(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  { places, path, record }: Removed,
): Promise<Dependent[]> {
  const params = paramsOf(ctx);
  const lists = [
    ...placesBelow(places, path).map((place) => ({ place, query: {} as Params, params })),
    ...(REFERRING_LISTS[path] ?? []).map(({ list, query }) => ({
      place: places.get(list),
      query: query(record),
      params: {},
    })),
  ];
  const counts = await Promise.all(
    lists.map(async ({ place, query, params: listParams }) => {
      const read = place?.kind === 'list' ? place.read : undefined;
      if (place === undefined || read === undefined || !mayCall(session, read)) return undefined;
      const accepts = (name: string) => Object.hasOwn(read.query?.shape ?? {}, name);
      const paging = {
        ...(accepts('per_page') && { per_page: '1' }),
        ...(accepts('include_totals') && { include_totals: 'true' }),
      };
      const answer = await unlessRefused(() =>
        callApi(deps, ctx, session, nameOfCall(read), { params: listParams, query: { ...paging, ...query } }),
      );
      const { items, total } = listOf(answer?.body);
      const filters = filterNames(read).filter((name) => Object.hasOwn(query, name));
      const search = filters.length === 0 ? '' : `?${new URLSearchParams(query)}`;
      return {
        href: `${pageOf(place.path, listParams)}${search}`,
        text: titleOf(place.path),
        count: total ?? items.length,
      };
    }),
  );
  return counts.filter((one): one is Dependent => one !== undefined && one.count > 0);
}

/** Runs a call; undefined when it is refused. */
async function unlessRefused<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.status < 500) return undefined;
    throw thrown;
  }
}

export async function submitRemoval(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  target: PlaceOperation,
  { isForced }: { isForced: boolean },
): Promise<void> {
  const { places, place, call } = target;
  const params = paramsOf(ctx);
  try {
    const query = isForced ? { force: 'true' } : {};
    await callApi(deps, ctx, session, nameOfCall(call), { params, query });
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || ![400, 409].includes(thrown.status)) throw thrown;
    return showRemoval(deps, ctx, session, target, thrown);
  }
  const above = crumbsOf(places, place.path, params).at(-1)?.href ?? '/console/resources';
  redirectAfterForm(
    ctx,
    place.kind === 'record' ? above : placeAfter(target, params),
    'console.said.deleted',
  );
}
