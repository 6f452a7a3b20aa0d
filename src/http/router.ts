// The router: answers the declared requests (routes.ts), each under its rules, and no others.
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { atMost } from './at-most.ts';
import type { BodyRules } from './body.ts';
import { checkBody } from './checked-body.ts';
import { anyOrigin, applicationOrigins, isSentByAnotherSite } from './cors.ts';
import { AuthError, type ErrorShape, isBusy, oauthShape, toAuthError } from './errors.ts';
import { findPath, type PathTree, pathTree } from './path-tree.ts';

import type { Admission, Area, Method, Route } from './routes.ts';

interface RouterDependencies {
  log: Logger;
  /** Reports whether an `Origin` belongs to one of the tenant's applications. */
  isApplicationOrigin(origin: string): Promise<boolean>;
  /** Writes an error as a page. */
  errorPage: ErrorShape;
  /** Reports whether a limit with this name exists. */
  isLimit(name: string): boolean;
  /** Runs before anything else is done for a request. @throws AuthError when the request is refused. */
  guard(ctx: Context, path: string | undefined): Admission | Promise<Admission>;
  /** Counts the request against a limit. @throws AuthError 429 */
  takeLimit(ctx: Context, name: string): Promise<void>;
  /** Returns the middleware that leaves the parsed body at `ctx.request.body`. */
  readBody(rules: BodyRules): Middleware;
  /** Parts of the tree of paths whose errors have one shape, even for unknown paths. */
  areas?: readonly Area[];
  /**
   * The maximum number of requests handled at once, not counting those of routes without a limit. Waiting for a body
   * does not count, so that slow senders cannot occupy places.
   */
  maxConcurrent: number;
}

/** The routes of a path. */
interface Methods {
  byMethod: Map<Method, BoundRoute>;
  /** Any of the routes: the rules needed before the method is known are the same for all. */
  first: BoundRoute;
}

/** A route with the reader of its bodies. */
interface BoundRoute extends Route {
  read: Middleware;
}

const noop = async () => undefined;

/**
 * Answers the declared requests and no others. A path is compared as it was sent (RFC 3986 §6.2.1): one that differs
 * in case, in a slash or in percent-encoding is unknown. An unknown path is answered with 404, another method with
 * 405.
 * @throws Error for declarations that contradict one another.
 */
export function createRouter(routes: readonly Route[], deps: RouterDependencies): Middleware {
  for (const { path, limit, furtherLimits = [] } of routes) {
    for (const name of [limit, ...furtherLimits]) {
      if (name !== 'unlimited' && !deps.isLimit(name))
        throw new Error(`${path} has a limit that does not exist: ${name}`);
    }
  }
  const readerOf = bodyReaders(deps.readBody);
  const tree = routeTree(routes.map((route) => ({ ...route, read: readerOf(route.bodies ?? {}) })));
  const rules: Record<Route['cors'], Middleware> = {
    none: (_ctx, next) => next(),
    any: anyOrigin(),
    applications: applicationOrigins(deps.isApplicationOrigin),
  };
  const router = { ...deps, work: atMost(deps.maxConcurrent), logOverload: overloadWarning(deps.log) };
  return (ctx) => {
    const found = findPath(tree, ctx.path);
    const first = found?.value.first;
    ctx.state.route = first?.path;
    return rules[first?.cors ?? 'none'](ctx, () => respond(router, ctx, found));
  };
}

/** Shares one reader among all routes with the same rules: there are hundreds of routes, and few different rules. */
function bodyReaders(readBody: RouterDependencies['readBody']): RouterDependencies['readBody'] {
  const readers = new Map<string, Middleware>();
  return (rules) => {
    const key = JSON.stringify(rules);
    const reader = readers.get(key) ?? readBody(rules);
    readers.set(key, reader);
    return reader;
  };
}

interface Router extends RouterDependencies {
  work: ReturnType<typeof atMost>;
  /** Logs that requests are refused. */
  logOverload(): void;
}

async function respond(
  deps: Router,
  ctx: Context,
  found: { value: Methods; params: Record<string, string> } | undefined,
): Promise<void> {
  const first = found?.value.first;
  const route = found?.value.byMethod.get(ctx.method as Method);
  const area = first ? undefined : deps.areas?.find(({ prefix }) => ctx.path.startsWith(prefix));
  try {
    if (ctx.method === 'OPTIONS' && first !== undefined && first.cors !== 'none') {
      // The CORS middleware has answered preflights; this is a plain question about the path (RFC 9110 §9.3.7).
      ctx.status = 204;
      ctx.set('Allow', allowed(found?.value));
      return;
    }
    const guarded = deps.guard(ctx, first?.path);
    if (guarded !== undefined && (await guarded) === 'answered') return;
    const { limit } = route ?? first ?? area ?? { limit: 'other' };
    if (limit !== 'unlimited') await deps.takeLimit(ctx, limit);
    if (found === undefined) throw new AuthError(404, 'not_found', 'There is nothing here.');
    if (route === undefined) {
      ctx.set('Allow', allowed(found.value));
      throw new AuthError(405, 'invalid_request', 'The method is not allowed here.');
    }
    if (found.value.byMethod.has('HEAD') === false && isPrefetch(ctx)) return refusePrefetch(ctx);
    if (route.cors === 'applications') await refuseForeignPages(deps, ctx);
    ctx.params = found.params;
    if ((await receive(route, ctx)) === 'answered') return;
    for (const name of route.furtherLimits ?? []) await deps.takeLimit(ctx, name);
    if (route.body !== undefined) ctx.state.body = checkBody(ctx, route.body, route.errors);
    await (limit === 'unlimited' ? route.handle(ctx) : deps.work(() => route.handle(ctx)));
  } catch (thrown) {
    const error = toAuthError(thrown, deps.log.child({ requestId: ctx.state.requestId }));
    if (isBusy(error)) ctx.set('Retry-After', '1');
    if (error.reported === 'overload') deps.logOverload();
    const shape = (route ?? first ?? area)?.errors ?? (isBrowser(ctx) ? 'page' : oauthShape);
    await (shape === 'page' ? deps.errorPage : shape)(ctx, error);
  }
}

/**
 * Admits a request and reads its body. The sender decides how long its body takes, up to the server's time limit, and
 * meanwhile the token may be revoked or the user blocked. So a request is admitted again after its body, unless the
 * whole body was there when it was admitted: most bodies arrive during that, and those requests are checked once.
 */
async function receive(route: BoundRoute, ctx: Context): Promise<Admission> {
  if ((await route.admit?.(ctx)) === 'answered') return 'answered';
  const hasArrived = ctx.req.complete;
  await route.read(ctx, noop);
  return hasArrived ? undefined : route.admit?.(ctx);
}

/** Limits the warning to one line in ten seconds, so that an overload does not also fill the log. */
function overloadWarning(log: Logger): () => void {
  let last = -Infinity;
  return () => {
    if (performance.now() - last < 10_000) return;
    last = performance.now();
    log.warn('the server is busy: requests are answered 503');
  };
}

/**
 * Refuses requests that pages of unknown origins send to endpoints meant for applications.
 * @throws AuthError 403 `access_denied`.
 */
async function refuseForeignPages({ isApplicationOrigin }: RouterDependencies, ctx: Context): Promise<void> {
  if (!isSentByAnotherSite(ctx) || (await isApplicationOrigin(ctx.get('Origin')))) return;
  throw new AuthError(403, 'access_denied', 'Pages of this origin are not allowed to send this request.');
}

/**
 * Reports whether a browser loads a page before its user has asked for it (Fetch `Sec-Purpose`, also with `prerender`; `Purpose`
 * and `X-Moz` of older browsers).
 */
function isPrefetch(ctx: Context): boolean {
  if (ctx.method !== 'GET') return false;
  const purpose = ctx.get('Sec-Purpose') || ctx.get('Purpose') || ctx.get('X-Moz');
  return /^prefetch\b/i.test(purpose.trim());
}

/**
 * Answers a prefetch of what takes effect by GET, such as a logout: those are the routes without HEAD. The browser drops an
 * answer that is no success, and asks again when the user follows the link.
 */
function refusePrefetch(ctx: Context): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = null;
  // Assigning an empty body makes Koa set 204.
  ctx.status = 503;
}

/** Reports whether the client prefers HTML to JSON. */
function isBrowser(ctx: Context): boolean {
  return ctx.accepts('json', 'html') === 'html';
}

function allowed(methods: Methods | undefined): string {
  const { byMethod = new Map(), first } = methods ?? {};
  return [...byMethod.keys(), ...(first === undefined || first.cors === 'none' ? [] : ['OPTIONS'])].join(
    ', ',
  );
}

function routeTree(routes: readonly BoundRoute[]): PathTree<Methods> {
  const tree = pathTree<Methods>();
  for (const route of routes) {
    const { byMethod, first } = tree.add(route.path, () => ({ byMethod: new Map(), first: route }));
    if (first.cors !== route.cors) throw new Error(`${route.path} has two rules for other origins`);
    for (const method of route.methods) {
      if (byMethod.has(method)) throw new Error(`${method} ${route.path} is declared twice`);
      byMethod.set(method, route);
    }
  }
  return tree;
}
