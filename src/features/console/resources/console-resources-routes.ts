// Routes of the resource pages, generated from the calls of the Management API.
import type { Context } from 'koa';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclaration, RouteDeclarations } from '../../../http/server/router.ts';
import type { CallRules } from '../../management/call.ts';
import { maySeeSecrets } from '../../management/roles/administrator-roles.ts';
import { isObject } from '../../management/section.ts';
import {
  type ConsoleSession,
  consoleForm,
  consolePage,
  LONG_TEXTS,
  redirectAfterForm,
} from '../console-page.ts';
import { queryText } from '../query.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { hasSecrets } from './console-resource-secrets.ts';
import {
  groupOf,
  type Operation,
  type Place,
  parametersOf,
  placesBelow,
  placesOf,
  titleOf,
} from './declared.ts';
import { isListOfRecords } from './find.ts';
import { operationForm, renderForm } from './form-page.ts';
import { showList } from './list-page.ts';
import {
  crumbsOf,
  type Link,
  labelOf,
  operationLinks,
  type Places,
  paramsOf,
  type ResourcesDependencies,
  readAt,
  requireCall,
  sectionOf,
  translated,
} from './model.ts';
import { isHarmless, mayCall, operationPath, operationsOf, type Params, pageOf } from './operations.ts';
import { showRemoval, submitRemoval } from './remove-page.ts';
import { type ShownMember, shownMember, shownMembers } from './shown.ts';
import { isShownOnce, submitForm } from './submit-form.ts';

type Route = RouteDeclaration<ResourcesDependencies>;

/** Lists that have a section of the navigation. */
const NAMED_LISTS = { apis: '/resource-servers', roles: '/roles', organizations: '/organizations' } as const;

function routesOf(places: Places): RouteDeclarations<ResourcesDependencies> {
  return Object.fromEntries([
    [
      'GET /console/resources',
      consolePage<ResourcesDependencies>('resources', { scopes: [] }, (deps, ctx, session) =>
        showIndex(deps, ctx, session, places),
      ),
    ],
    [
      'GET /console/open',
      consolePage<ResourcesDependencies>('resources', { scopes: [] }, async (_deps, ctx) =>
        openByName(ctx, places),
      ),
    ],
    ...Object.entries(NAMED_LISTS).map(([section, path]) => [
      `GET /console/${section}`,
      consolePage<ResourcesDependencies>(section, { scopes: [] }, async (_deps, ctx) =>
        redirectAfterForm(ctx, pageOf(path)),
      ),
    ]),
    ...[...places.values()].flatMap((place) => [
      ...readRoutes(places, place),
      ...operationsOf(place).flatMap(([operation]) => operationRoutes(places, place, operation)),
    ]),
  ]);
}

/** Redirects to the page of a record whose ids are in the query. @throws AuthError 404 */
function openByName(ctx: Context, places: Places): void {
  const param = (name: string) => queryText(ctx, name);
  const place = places.get(param('at'));
  const params = parametersOf(place?.path ?? '').map((name) => [name, param(name)] as const);
  if (place?.read === undefined || params.some(([, value]) => value === ''))
    throw new AuthError(404, 'not_found', 'There is nothing here.');
  redirectAfterForm(ctx, pageOf(place.path, Object.fromEntries(params)));
}

function readRoutes(places: Places, place: Place): [string, Route][] {
  const { read, path } = place;
  if (read === undefined) return [];
  const section = sectionOf(place);
  const rules = rulesFor(read);
  const show = async (
    deps: ResourcesDependencies,
    ctx: Context,
    session: ConsoleSession,
    isRevealed: boolean,
  ) => {
    requireCall(session, read);
    if (place.kind === 'list') return showList(deps, ctx, session, { places, place, read });
    const body = await readAt(deps, ctx, session, place);
    if (isListOfRecords(body) && place.kind === 'setting')
      return showList(deps, ctx, session, { places, place, read });
    await showRecord(deps, ctx, session, { places, place, record: body, isRevealed });
  };
  const page = consolePage<ResourcesDependencies>(section, rules, (deps, ctx, session) =>
    show(deps, ctx, session, false),
  );
  const reveal = consoleForm<ResourcesDependencies>(
    section,
    { ...rules, isDangerous: true },
    (deps, ctx, session) => show(deps, ctx, session, true),
  );
  return [
    [`GET /console/resources${path}`, page],
    ...(place.kind === 'list' ? [] : [[`POST /console/reveal${path}`, reveal] as [string, Route]]),
  ];
}

/** Where one of several scopes is enough, {@link requireCall} checks it in the handler. */
const rulesFor = ({ scopes, allScopes, roleScopes = [] }: CallRules) => ({
  scopes: [...(allScopes ?? (scopes.length === 1 ? scopes : [])), ...roleScopes],
});

function operationRoutes(places: Places, place: Place, operation: Operation): [string, Route][] {
  const call = place[operation];
  if (call === undefined) return [];
  const section = sectionOf(place);
  const target = { places, place, operation, call };
  const isRemoval = operation === 'remove' && call.body === undefined && !hasParameters(place);
  // A PUT without a body ends something: it revokes a key.
  const isRemovalOrEnd = operation === 'remove' || (operation === 'replace' && call.body === undefined);
  const rules = {
    ...rulesFor(call),
    isDangerous: isRemovalOrEnd || isShownOnce(target) || !isHarmless(place),
  };
  return [
    [
      `GET /console/${operation}${place.path}`,
      consolePage<ResourcesDependencies>(section, rulesFor(call), async (deps, ctx, session) => {
        requireCall(session, call);
        if (isRemoval) return showRemoval(deps, ctx, session, target);
        const form = await operationForm(deps, ctx, session, target, ctx.query.as === 'json');
        await renderForm(deps, ctx, session, form);
      }),
    ],
    [
      `POST /console/${operation}${place.path}`,
      consoleForm<ResourcesDependencies>(
        section,
        { ...rules, bodies: LONG_TEXTS },
        async (deps, ctx, session) => {
          requireCall(session, call);
          const isForced = formFields(ctx, 'force').force === 'true';
          await (isRemoval
            ? submitRemoval(deps, ctx, session, target, { isForced })
            : submitForm(deps, ctx, session, target));
        },
      ),
    ],
  ];
}

/** Reports whether a deletion has parameters other than its path. */
const hasParameters = ({ remove }: Place): boolean =>
  Object.keys(remove?.query?.shape ?? {}).some((name) => name !== 'force');

export const resourcesRoutes = routesOf(placesOf());

// The page of all resources.

interface Group {
  title: string;
  pages: Link[];
  actions: Link[];
  /** Records that no list leads to; they are opened by entering their ids. */
  named: { title: string; at: string; parameters: string[] }[];
}

interface ResourcesIndexModel {
  groups: Group[];
}

export const RESOURCES_INDEX_PAGE = declareConsolePage<ResourcesIndexModel>('console/resources-index');

/** Shows the resources that the role may see, grouped by the first segment of their paths. */
async function showIndex(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  places: Places,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: RESOURCES_INDEX_PAGE,
    section: 'resources',
    title: 't:console.nav.resources',
    model: { groups: groupsOf(session, places) },
  });
}

function groupsOf(session: ConsoleSession, places: Places): Group[] {
  const names = [...new Set([...places.keys()].map(groupOf))].sort();
  return names
    .map((name) => {
      const all = [...places.values()].filter(({ path }) => groupOf(path) === name);
      const top = all.filter(({ path }) => parametersOf(path).length === 0);
      return {
        title: titleOf(`/${name}`),
        pages: top
          .filter(({ read }) => read !== undefined && mayCall(session, read))
          .map(({ path }) => ({ href: pageOf(path), text: titleOf(path) })),
        actions: top
          .filter(({ read }) => read === undefined)
          .flatMap((place) => operationLinks(session, place)),
        named: all
          .filter((place) => isFoundByName(session, places, place))
          .map(({ path }) => ({
            title: titleOf(path),
            at: path,
            parameters: parametersOf(path),
          })),
      };
    })
    .filter(({ pages, actions, named }) => pages.length + actions.length + named.length > 0);
}

/** Reports whether a record can only be reached by entering its ids, because no list leads to it. */
function isFoundByName(session: ConsoleSession, places: Places, { path, read }: Place): boolean {
  if (read === undefined || !mayCall(session, read)) return false;
  const [, first = ''] = /^(.*?)\/:\w+/.exec(path) ?? [];
  if (first === '' || parametersOf(path).length === 0) return false;
  const head = places.get(first);
  const isBelowFound = [...places.values()].some(
    (other) =>
      other.path !== path && path.startsWith(`${other.path}/`) && /:\w+$/.test(other.path) && other.read,
  );
  return head?.read === undefined && !isBelowFound;
}

// The page of a record or of settings.

interface ResourcesRecordModel {
  isRecord: boolean;
  heading: string;
  crumbs: Link[];
  members: ShownMember[];
  isAbsent: boolean;
  operations: Link[];
  json: string | undefined;
  below: { pages: Link[]; actions: Link[] };
  isRevealed: boolean;
  reveal: string | undefined;
}

export const RESOURCES_RECORD_PAGE = declareConsolePage<ResourcesRecordModel>('console/resources-record');

/** @param isRevealed whether its secrets are shown. */
async function showRecord(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  {
    places,
    place,
    record,
    isRevealed = false,
  }: { places: Places; place: Place; record: unknown; isRevealed?: boolean },
): Promise<void> {
  const params = paramsOf(ctx);
  const last = params[parametersOf(place.path).at(-1) ?? ''] ?? '';
  const isRecord = place.kind === 'record';
  const hides = maySeeSecrets(session.administrator.role) && !isRevealed && hasSecrets(record);
  await renderConsole(deps, ctx, session, {
    page: RESOURCES_RECORD_PAGE,
    section: sectionOf(place),
    title: translated(deps, ctx, 'title', titleOf(place.path)),
    model: {
      isRecord,
      heading: isRecord ? labelOf(record, last) : titleOf(place.path),
      crumbs: crumbsOf(places, place.path, params),
      members: isObject(record)
        ? shownMembers(record, isRevealed)
        : [shownMember(titleOf(place.path), record, isRevealed)],
      isAbsent: record === undefined,
      operations: operationLinks(session, place, params, record === undefined),
      json: place.change === undefined || record === undefined ? undefined : jsonLink(session, place, params),
      below: below(session, places, place.path, params),
      isRevealed,
      reveal: hides ? operationPath('reveal', place.path, params) : undefined,
    },
  });
}

function jsonLink(session: ConsoleSession, { path, change }: Place, params: Params): string | undefined {
  if (change === undefined || !mayCall(session, change)) return undefined;
  return `${operationPath('change', path, params)}?as=json`;
}

/** Returns links to the pages below a record, and to the actions on it. */
function below(
  session: ConsoleSession,
  places: Places,
  path: string,
  params: Params,
): { pages: Link[]; actions: Link[] } {
  const near = placesBelow(places, path);
  const pages = near
    .filter(({ read }) => read !== undefined && mayCall(session, read))
    .map((place) => ({ href: pageOf(place.path, params), text: titleOf(place.path) }));
  const actions = near
    .filter(({ read }) => read === undefined)
    .flatMap((place) => operationLinks(session, place, params));
  return { pages, actions };
}
