// Every page of the console that a link leads to, one of each kind: found as a person would, from the overview on.
import { consoleRoutes } from '../../src/console/feature.ts';
import { addressOf } from '../../src/http/routes.ts';

/** A page that was found: the address of its route, and one that it has. */
export interface FoundPage {
  route: string;
  path: string;
}

/** Which route a path is of: with the fewest parameters, as the router takes it. */
function routeFinder(): (path: string) => string | undefined {
  const routes = Object.keys(consoleRoutes)
    .filter((key) => key.startsWith('GET '))
    .map((key) => addressOf(key).path)
    .map((path) => ({ path, test: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`) }))
    .sort((a, b) => a.path.split(':').length - b.path.split(':').length);
  return (path) => routes.find(({ test }) => test.test(path))?.path;
}

/** Addresses of the console that a page links to, without what is after `#`. */
export function linksOf(html: string): string[] {
  return [...html.matchAll(/<a [^>]*href="(\/console[^"#]*)/g)].map(([, href = '']) =>
    href.replaceAll('&amp;', '&'),
  );
}

/**
 * Follows the links of pages, to one page of each route.
 * @param open gives the HTML of a path; undefined where there is no page, which is another try for its route.
 * @param begin where to look first, beside the overview.
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
