// All pages of the console that links lead to, one for each route, found by following links from the overview.
import { consoleRoutes } from '../../src/features/console/console-feature.ts';
import { parseRouteKey } from '../../src/http/server/router.ts';

/** A page that was found: the pattern of its route, and its path. */
export interface FoundPage {
  route: string;
  path: string;
}

/** Returns the route that a path belongs to: the one with the fewest parameters, as in the router. */
function routeFinder(): (path: string) => string | undefined {
  const routes = Object.keys(consoleRoutes)
    .filter((key) => key.startsWith('GET '))
    .map((key) => parseRouteKey(key).path)
    .map((path) => ({ path, test: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`) }))
    .sort((a, b) => a.path.split(':').length - b.path.split(':').length);
  return (path) => routes.find(({ test }) => test.test(path))?.path;
}

/** Returns the addresses in the console that a page links to, without fragments. */
function linksOf(html: string): string[] {
  return [...html.matchAll(/<a [^>]*href="(\/console[^"#]*)/g)].map(([, href = '']) =>
    href.replaceAll('&amp;', '&'),
  );
}

/**
 * Follows the links of pages, to one page of each route.
 * @param open returns the HTML of a path; undefined if there is no page, and another path is then tried for the route.
 * @param begin paths to open first, beside the overview.
 */
export async function findPages(
  open: (path: string) => Promise<string | undefined>,
  begin: readonly string[] = [],
): Promise<FoundPage[]> {
  const routeOf = routeFinder();
  const found = new Map<string, string>();
  const seen = new Set<string>();
  const waiting = ['/console', ...begin];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const route = routeOf(path.split('?')[0] ?? '');
    if (route === undefined || found.has(route) || seen.has(path)) continue;
    seen.add(path);
    const html = await open(path);
    if (html === undefined) continue;
    found.set(route, path);
    waiting.push(...linksOf(html));
  }
  return [...found].map(([route, path]) => ({ route, path }));
}
