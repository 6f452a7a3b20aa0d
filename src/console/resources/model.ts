// What the pages of resources have in common.
import type { Context } from 'koa';
import type { CallRules } from '../../management/call.ts';
import { type AskDependencies, ask, askIfThere } from '../ask.ts';
import type { AtConsole, ConsolePageDependencies } from '../page.ts';
import { roleRefusal } from '../roles.ts';
import { groupOf, idOf, nameOf, type Place, parametersOf, titleOf } from './declared.ts';
import { type Item, listOf } from './find.ts';
import { mayCall, nameOfCall, operationPath, operationsOf, type Params, pageOf } from './operations.ts';

export interface ResourcesDependencies extends ConsolePageDependencies, AskDependencies {}

export type Places = ReadonlyMap<string, Place>;

/** A link to something that can be done, or to a place. */
export interface Link {
  href: string;
  text: string;
  operation?: string;
  /** Whether the text is what a place is called, and not a record's own name. */
  isTitle?: boolean;
}

/** Sections of the navigation that resources are a part of, by the first word of their path. */
const SECTIONS: Readonly<Record<string, string>> = {
  clients: 'applications',
  'resource-servers': 'apis',
  connections: 'connections',
  users: 'users',
  roles: 'roles',
  organizations: 'organizations',
  actions: 'actions',
};

/** The section of the navigation that a place belongs to. */
export const sectionOf = ({ path }: Place): string => SECTIONS[groupOf(path)] ?? 'resources';

export const paramsOf = (ctx: Context): Params => ctx.params as Record<string, string>;

/** @throws AuthError 403 where the role does not allow a call. */
export function requireCall(here: AtConsole, call: CallRules): void {
  if (!mayCall(here, call)) throw roleRefusal();
}

/** Lists that have a page made by hand. */
const BY_HAND: Readonly<Record<string, string>> = {
  '/clients': '/console/applications',
  '/connections': '/console/connections',
  '/users': '/console/users',
  '/actions/actions': '/console/actions',
};

/** What a declaration says (a title, what a call does), in the reader's language where that has words for it. */
export function inWords(
  { views }: Pick<ResourcesDependencies, 'views'>,
  ctx: Context,
  kind: 'title' | 'doing',
  text: string,
): { text: string } {
  const locale = views.locale(ctx);
  const key = `console.${kind}.${text}`;
  return { text: locale.has(key) ? locale.text(key) : text };
}

/** The way to a place: all that stand above it and can be opened. */
export function crumbsOf(places: Places, path: string, params: Params): Link[] {
  const parts = path.split('/').slice(1);
  return parts.slice(0, -1).flatMap((part, index) => {
    const above = `/${parts.slice(0, index + 1).join('/')}`;
    if (places.get(above)?.read === undefined) return [];
    const isTitle = !part.startsWith(':');
    const text = isTitle ? titleOf(above) : (params[part.slice(1)] ?? '');
    return [{ href: BY_HAND[above] ?? pageOf(above, params), text, isTitle }];
  });
}

/** What the administrator can do at a place. @param isAbsent whether nothing is there yet. */
export function operationLinks(here: AtConsole, place: Place, params: Params = {}, isAbsent = false): Link[] {
  return operationsOf(place)
    .filter(([operation]) => !isAbsent || operation === 'create' || operation === 'replace')
    .filter(([, call]) => mayCall(here, call))
    .map(([operation, call]) => ({
      href: operationPath(operation, place.path, params),
      text: call.summary,
      operation,
    }));
}

/** The place of a list that has these records, where they have no address of their own below it. */
export function homeOf(places: Places, place: Place): string | undefined {
  if (place.child !== undefined) return place.child;
  const last = place.path.split('/').at(-1) ?? '';
  const child = `/${last}/:id`;
  return place.path !== `/${last}` && places.get(child)?.read !== undefined ? child : undefined;
}

/** The parameters of one record of a list. @returns undefined where nothing says by what it is found. */
export function paramsOfItem(item: Item, child: string, params: Params): Params | undefined {
  const id = idOf(item, child);
  const own = parametersOf(child);
  return id === undefined ? undefined : { ...(own.length > 1 ? params : {}), [own.at(-1) ?? 'id']: id };
}

/** What people call a record. */
export const labelOf = (record: unknown, fallback: string): string =>
  (typeof record === 'object' && record !== null ? nameOf(record as Item) : undefined) ?? fallback;

/** What a call answers, or undefined where there is nothing yet and the place can be given something. @throws AuthError */
export async function readAt(
  deps: ResourcesDependencies,
  ctx: Context,
  here: AtConsole,
  { read, create, replace }: Place,
): Promise<unknown> {
  if (read === undefined) return undefined;
  const canBeMade = create !== undefined || replace !== undefined;
  const asking = canBeMade ? askIfThere : ask;
  return (await asking(deps, ctx, here, nameOfCall(read), { params: paramsOf(ctx) }))?.body;
}

/**
 * A record as it is: what its address answers, or what the list says that it is in.
 * @throws AuthError 404
 */
export async function recordAt(
  deps: ResourcesDependencies,
  ctx: Context,
  here: AtConsole,
  { places, place }: { places: Places; place: Place },
): Promise<unknown> {
  const params = paramsOf(ctx);
  if (place.read !== undefined) return readAt(deps, ctx, here, place);
  const above = places.get(place.path.slice(0, place.path.lastIndexOf('/')))?.read;
  if (above === undefined || !mayCall(here, above)) return undefined;
  const { items } = listOf((await ask(deps, ctx, here, nameOfCall(above), { params })).body);
  const last = parametersOf(place.path).at(-1) ?? '';
  return items.find((item) => idOf(item, place.path) === params[last]);
}
