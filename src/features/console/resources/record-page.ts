// The page of a record or of settings.
import type { Context } from 'koa';
import { isObject } from '../../management/section.ts';
import type { ConsoleSession } from '../page.ts';
import { renderConsole } from '../render.ts';
import { maySeeSecrets } from '../roles.ts';
import { type Place, parametersOf, placesBelow, titleOf } from './declared.ts';
import {
  crumbsOf,
  type Link,
  labelOf,
  operationLinks,
  type Places,
  paramsOf,
  type ResourcesDependencies,
  sectionOf,
  translated,
} from './model.ts';
import { mayCall, operationPath, type Params, pageOf } from './operations.ts';
import { hasSecrets } from './secrets.ts';
import { shownMember, shownMembers } from './shown.ts';

/** Shows a record. @param isRevealed whether its secrets are shown. */
export async function showRecord(
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
    template: 'console/resources-record',
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
