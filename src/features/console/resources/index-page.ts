// The page of all resources.
import type { Context } from 'koa';
import type { ConsoleSession } from '../page.ts';
import { renderConsole } from '../render.ts';
import { groupOf, type Place, parametersOf, titleOf } from './declared.ts';
import { type Link, operationLinks, type Places, type ResourcesDependencies } from './model.ts';
import { mayCall, pageOf } from './operations.ts';

interface Group {
  title: string;
  pages: Link[];
  actions: Link[];
  /** Records that no list leads to; they are opened by entering their ids. */
  named: { title: string; at: string; parameters: string[] }[];
}

/** Shows the resources that the role may see, grouped by the first segment of their paths. */
export async function showIndex(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  places: Places,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    template: 'console/resources-index',
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
