// Which requests exist. Every feature declares its own as data: method and path, and beside them the limit, the
// rule for other origins and the shape of failures, so that no spelling of a path can have one without the other.
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { atMost } from './at-most.ts';
import type { BodyRules } from './body.ts';
import { checkBody } from './checked-body.ts';
import { anyOrigin, applicationOrigins, isSentByAnotherSite } from './cors.ts';
import { AuthError, type ErrorShape, isBusy, oauthShape, toAuthError } from './errors.ts';
import { findPath, type PathTree, pathTree } from './path-tree.ts';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What a route says of itself, its address apart. */
interface RouteRules {
  /** The bucket per address that a request takes from, before its body is read; `unlimited` for none. */
  limit: string;
  /** Further buckets of the address, from which only what is to be answered takes: after the body was read. */
  also?: readonly string[];
  /** Which other origins' scripts may call it; the same for every method of a path. */
  cors: 'none' | 'applications' | 'any';
  /** How failures are told: in this shape, or on the error page. */
  errors: ErrorShape | 'page';
  /** Which bodies are read, where those of other requests are not enough. */
  bodies?: BodyRules;
}

/** One request, or several of one path that are handled alike. */
export interface Route extends RouteRules {
  /** `HEAD` stands here only where asking about an address changes nothing. */
  methods: readonly Method[];
  /** Segments after slashes; `:name` is one segment of any text, which the handler finds in `ctx.params`. */
  path: string;
  /** What its body must be, where the router checks it. */
  body?: z.ZodType | undefined;
  /** Asked before the body is read, so that strangers do not have it read. @throws AuthError */
  admit?(ctx: Context): Promise<void>;
  handle(ctx: Context): Promise<unknown> | unknown;
}

/** What the document of the API says of a route. */
interface RouteDescription {
  /** One line. Without it a route is no part of the API: it is between the server and its own pages. */
  summary?: string;
  /** Who may ask, by names of the document's security schemes; each alone is enough. */
  security?: readonly SecurityScheme[];
  query?: z.ZodObject;
  /** What the body may be. Checked by the handler, unless it was declared by {@link taking}. */
  body?: z.ZodType;
  /** The media types of the body that are taken: JSON and forms alike where nothing is said. */
  bodyTypes?: readonly ('json' | 'form')[];
  /** By status: in a few words what it means, and the body that comes with it. */
  answers?: Readonly<Record<number, string | { description: string; body: z.ZodType; type?: string }>>;
}

/** How somebody who asks is known: their credentials, or a token that they hold. */
type SecurityScheme = 'client' | 'accessToken' | 'mfaToken' | 'device';

/**
 * A route as a feature declares it.
 * @template D what the feature is given.
 */
export interface RouteDeclaration<D> extends RouteRules, RouteDescription {
  /** Whether the router checks the body, before the handler. */
  isBodyChecked?: boolean;
  /** Asked before the body is read, so that strangers do not have it read. @throws AuthError */
  admit?: (deps: D, ctx: Context) => Promise<void>;
  handle: (deps: D, ctx: Context) => Promise<unknown> | unknown;
}

/**
 * Has the router check the body before the handler, which gets what the schema makes of it. What is wrong is told in
 * the words of the route's error shape.
 */
export function taking<D, B extends z.ZodType>(
  body: B,
  handle: (deps: D, ctx: Context, body: z.output<B>) => Promise<unknown> | unknown,
): Required<Pick<RouteDeclaration<D>, 'body' | 'isBodyChecked' | 'handle'>> {
  return {
    body,
    isBodyChecked: true,
    handle: (deps, ctx) => handle(deps, ctx, ctx.state.body as z.output<B>),
  };
}

/** By `GET /path`, or `GET|HEAD /path` for methods that are handled alike. */
export type RouteDeclarations<D> = Readonly<Record<`${Method}${string} /${string}`, RouteDeclaration<D>>>;

/**
 * The routes of a feature, as the router takes them.
 * @throws Error when a key is no method and path.
 */
export function bindRoutes<D>(declared: RouteDeclarations<D>, deps: D): Route[] {
  return Object.entries(declared).map(([key, route]) => ({
    ...addressOf(key),
    limit: route.limit,
    ...(route.also && { also: route.also }),
    cors: route.cors,
    errors: route.errors,
    ...(route.bodies && { bodies: route.bodies }),
    body: route.isBodyChecked === true ? route.body : undefined,
    admit: async (ctx) => route.admit?.(deps, ctx),
    handle: (ctx) => route.handle(deps, ctx),
  }));
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] satisfies Method[];

/** The methods and the path of a declared route. @throws Error when its key says none. */
export function addressOf(key: string): Pick<Route, 'methods' | 'path'> {
  const [methods = '', path = '', ...more] = key.split(' ');
  const named = methods.split('|');
  if (more.length > 0 || !path.startsWith('/') || !named.every((one) => METHODS.includes(one))) {
    throw new Error(`${key} is no method and path`);
  }
  return { methods: named as Method[], path };
}

/** What a page for people has in common with all others. */
export const PAGE = { limit: 'hosted', cors: 'none', errors: 'page' } as const;

interface RouterDependencies {
  log: Logger;
  /** Whether an `Origin` is one of the tenant's applications. */
  isApplicationOrigin(origin: string): Promise<boolean>;
  /** Answers with the error page. */
  errorPage: ErrorShape;
  /** Whether there is a bucket of that name. */
  isLimit(name: string): boolean;
  /** @throws AuthError 429 */
  takeLimit(ctx: Context, name: string): Promise<void>;
  /** Leaves the body, parsed, at `ctx.request.body`. */
  readBody(rules: BodyRules): Middleware;
  /** Parts of the tree of paths that tell their failures in one shape, also where there is nothing. */
  areas?: readonly Area[];
  /**
   * How many requests are worked on at once, those without a limit apart. Waiting for a body is no work: whoever
   * sends theirs slowly takes nobody's place.
   */
  mostAtOnce: number;
}

/** A part of the tree of paths. */
export interface Area extends Pick<RouteRules, 'limit' | 'errors'> {
  /** What its paths begin with. */
  below: string;
}

type Methods = Map<Method, Bound>;

/** A route with the reader of its bodies. */
interface Bound extends Route {
  read: Middleware;
}

const nothing = async () => undefined;

/**
 * Answers the declared requests and no others. A path is taken as it was sent (RFC 3986 §6.2.1): another case, a
 * slash too many or an encoded letter is another path, and unknown. An unknown path is 404, another method 405.
 * @throws Error for declarations that contradict one another.
 */
export function createRouter(routes: readonly Route[], deps: RouterDependencies): Middleware {
  for (const { path, limit, also = [] } of routes) {
    for (const name of [limit, ...also]) {
      if (name !== 'unlimited' && !deps.isLimit(name))
        throw new Error(`${path} has a limit that does not exist: ${name}`);
    }
  }
  const tree = routeTree(routes.map((route) => ({ ...route, read: deps.readBody(route.bodies ?? {}) })));
  const rules: Record<Route['cors'], Middleware> = {
    none: (_ctx, next) => next(),
    any: anyOrigin(),
    applications: applicationOrigins(deps.isApplicationOrigin),
  };
  const router = { ...deps, work: atMost(deps.mostAtOnce), overload: everyTenSeconds(deps.log) };
  return async (ctx) => {
    const found = findPath(tree, ctx.path);
    // Any of them: what matters before the method is known is the same for all methods of a path.
    const [first] = found?.at.values() ?? [];
    const answer = () => respond(router, ctx, found && { methods: found.at, params: found.params });
    await rules[first?.cors ?? 'none'](ctx, answer);
  };
}

interface Router extends RouterDependencies {
  work: ReturnType<typeof atMost>;
  /** Notes in the log that requests are refused. */
  overload(): void;
}

async function respond(
  deps: Router,
  ctx: Context,
  found: { methods: Methods; params: Record<string, string> } | undefined,
): Promise<void> {
  const [first] = found?.methods.values() ?? [];
  const route = found?.methods.get(ctx.method as Method);
  const area = deps.areas?.find(({ below }) => ctx.path.startsWith(below));
  try {
    if (ctx.method === 'OPTIONS' && first !== undefined && first.cors !== 'none') {
      // Not a preflight, which the rule has answered: only a question about the path (RFC 9110 §9.3.7).
      ctx.status = 204;
      ctx.set('Allow', allowed(first, found?.methods));
      return;
    }
    const { limit } = route ?? first ?? area ?? { limit: 'other' };
    if (limit !== 'unlimited') await deps.takeLimit(ctx, limit);
    if (found === undefined) throw new AuthError(404, 'not_found', 'There is nothing here.');
    if (route === undefined) {
      ctx.set('Allow', allowed(first, found.methods));
      throw new AuthError(405, 'invalid_request', 'The method is not allowed here.');
    }
    if (route.cors === 'applications') await refuseForeignPages(deps, ctx);
    ctx.params = found.params;
    await route.admit?.(ctx);
    await route.read(ctx, nothing);
    for (const also of route.also ?? []) await deps.takeLimit(ctx, also);
    if (route.body !== undefined) ctx.state.body = checkBody(ctx, route.body, route.errors);
    await (limit === 'unlimited' ? route.handle(ctx) : deps.work(() => route.handle(ctx)));
  } catch (thrown) {
    const error = toAuthError(thrown, deps.log.child({ requestId: ctx.state.requestId }));
    if (isBusy(error)) {
      ctx.set('Retry-After', '1');
      deps.overload();
    }
    const shape = (route ?? first ?? area)?.errors ?? (isBrowser(ctx) ? 'page' : oauthShape);
    await (shape === 'page' ? deps.errorPage : shape)(ctx, error);
  }
}

/** One line for many: whoever brings an overload about shall not fill the log, too. */
function everyTenSeconds(log: Logger): () => void {
  let last = -Infinity;
  return () => {
    if (performance.now() - last < 10_000) return;
    last = performance.now();
    log.warn('the server is busy: requests are answered 503');
  };
}

/** What applications call from their pages is no other page's to have sent. @throws AuthError 403 `access_denied`. */
async function refuseForeignPages({ isApplicationOrigin }: RouterDependencies, ctx: Context): Promise<void> {
  if (!isSentByAnotherSite(ctx) || (await isApplicationOrigin(ctx.get('Origin')))) return;
  throw new AuthError(403, 'access_denied', 'Pages of this origin are not allowed to send this request.');
}

/** Whether the one who asks would rather see a page than read data. */
function isBrowser(ctx: Context): boolean {
  return ctx.accepts('json', 'html') === 'html';
}

function allowed(first: Bound | undefined, methods: Methods | undefined): string {
  return [
    ...(methods?.keys() ?? []),
    ...(first === undefined || first.cors === 'none' ? [] : ['OPTIONS']),
  ].join(', ');
}

function routeTree(routes: readonly Bound[]): PathTree<Methods> {
  const tree = pathTree<Methods>();
  for (const route of routes) {
    const methods = tree.add(route.path, () => new Map());
    for (const other of methods.values()) {
      if (other.cors !== route.cors) throw new Error(`${route.path} has two rules for other origins`);
    }
    for (const method of route.methods) {
      if (methods.has(method)) throw new Error(`${method} ${route.path} is declared twice`);
      methods.set(method, route);
    }
  }
  return tree;
}
