// What the pages of resources share.
import type { Context } from 'koa';
import type { CallRules } from '../../management/call.ts';
import { roleRefusal } from '../../management/roles/administrator-roles.ts';
import { type ApiCallDependencies, callApi, callApiIfFound } from '../api-calls.ts';
import type { ConsolePageDependencies, ConsoleSession } from '../console-page.ts';
import { groupOf, idOf, nameOf, type Place, parametersOf, titleOf } from './declared.ts';
import { type Item, listOf } from './find.ts';
import { mayCall, nameOfCall, operationPath, operationsOf, type Params, pageOf } from './operations.ts';

export interface ResourcesDependencies extends ConsolePageDependencies, ApiCallDependencies {}

export type Places = ReadonlyMap<string, Place>;

export interface Link {
  href: string;
  text: string;
  operation?: string;
  /** Whether the text is the title of a place rather than the name of a record. */
  isTitle?: boolean;
}

/** The sections of the navigation that show resources, by the first segment of the path. */
const SECTIONS: Readonly<Record<string, string>> = {
  clients: 'applications',
  'resource-servers': 'apis',
  connections: 'connections',
  users: 'users',
  roles: 'roles',
  organizations: 'organizations',
  actions: 'actions',
};

export const sectionOf = ({ path }: Place): string => SECTIONS[groupOf(path)] ?? 'resources';

export const paramsOf = (ctx: Context): Params => ctx.params as Record<string, string>;

/** @throws AuthError 403 */
export function requireCall(session: ConsoleSession, call: CallRules): void {
  if (!mayCall(session, call)) throw roleRefusal();
}

/** Lists that have a page of their own design. */
const CUSTOM_PAGES: Readonly<Record<string, string>> = {
  '/clients': '/console/applications',
  '/connections': '/console/connections',
  '/users': '/console/users',
  '/actions/actions': '/console/actions',
};

/** Returns a text of a declaration in the reader's language if there is a message for it. */
export function translated(
  { views }: Pick<ResourcesDependencies, 'views'>,
  ctx: Context,
  kind: 'title' | 'doing',
  text: string,
): { text: string } {
  const locale = views.locale(ctx);
  const key = `console.${kind}.${text}`;
  return { text: locale.has(key) ? locale.text(key) : text };
}

/** Returns links to the places above a path that can be opened. */
export function crumbsOf(places: Places, path: string, params: Params): Link[] {
  const parts = path.split('/').slice(1);
  return parts.slice(0, -1).flatMap((part, index) => {
    const above = `/${parts.slice(0, index + 1).join('/')}`;
    if (places.get(above)?.read === undefined) return [];
    const isTitle = !part.startsWith(':');
    const text = isTitle ? titleOf(above) : (params[part.slice(1)] ?? '');
    return [{ href: CUSTOM_PAGES[above] ?? pageOf(above, params), text, isTitle }];
  });
}

/**
 * Returns links to the operations that the administrator may carry out.
 * @param isAbsent whether nothing exists at the place yet.
 */
export function operationLinks(
  session: ConsoleSession,
  place: Place,
  params: Params = {},
  isAbsent = false,
): Link[] {
  return operationsOf(place)
    .filter(([operation]) => !isAbsent || operation === 'create' || operation === 'replace')
    .filter(([, call]) => mayCall(session, call))
    .map(([operation, call]) => ({
      href: operationPath(operation, place.path, params),
      text: call.summary,
      operation,
    }));
}

/** Returns the path of a list's records, which for a list below a record may be the path of a top-level resource. */
export function homeOf(places: Places, place: Place): string | undefined {
  if (place.child !== undefined) return place.child;
  const last = place.path.split('/').at(-1) ?? '';
  const child = `/${last}/:id`;
  return place.path !== `/${last}` && places.get(child)?.read !== undefined ? child : undefined;
}

/** Returns the path parameters of a list's record; undefined when its id is not known. */
export function paramsOfItem(item: Item, child: string, params: Params): Params | undefined {
  const id = idOf(item, child);
  const names = parametersOf(child);
  return id === undefined ? undefined : { ...(names.length > 1 ? params : {}), [names.at(-1) ?? 'id']: id };
}

export const labelOf = (record: unknown, fallback: string): string =>
  (typeof record === 'object' && record !== null ? nameOf(record as Item) : undefined) ?? fallback;

/**
 * Returns the answer at a place; undefined when nothing exists there yet: it can be created, or the place is linked
 * to whether or not anything is there, because its path has no id.
 * @throws AuthError as the call answers
 */
export async function readAt(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  { path, read, create, replace }: Place,
): Promise<unknown> {
  if (read === undefined) return undefined;
  const mayBeAbsent = create !== undefined || replace !== undefined || parametersOf(path).length === 0;
  const call = mayBeAbsent ? callApiIfFound : callApi;
  return (await call(deps, ctx, session, nameOfCall(read), { params: paramsOf(ctx) }))?.body;
}

/** Returns the current record: from its own path, or else from the list that contains it. @throws AuthError 404 */
export async function recordAt(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  { places, place }: { places: Places; place: Place },
): Promise<unknown> {
  const params = paramsOf(ctx);
  if (place.read !== undefined) return readAt(deps, ctx, session, place);
  const above = places.get(place.path.slice(0, place.path.lastIndexOf('/')))?.read;
  if (above === undefined || !mayCall(session, above)) return undefined;
  const { items } = listOf((await callApi(deps, ctx, session, nameOfCall(above), { params })).body);
  const last = parametersOf(place.path).at(-1) ?? '';
  return items.find((item) => idOf(item, place.path) === params[last]);
}
