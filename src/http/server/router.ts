// The router: answers the declared requests (`Route`), each under its rules, and no others.
import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { requester } from '../../runtime/requester.ts';
import { createShares } from '../../runtime/shares.ts';
import {
  AuthError,
  type BodyFault,
  type ErrorShape,
  isBusy,
  oauthShape,
  serverBusy,
  toAuthError,
} from '../errors.ts';
import { httpLimits, type Limit } from '../limits.ts';
import { type BodyRules, bodyOf } from './body.ts';

interface RouterDependencies {
  log: Logger;
  /** Reports whether an `Origin` belongs to one of the tenant's applications. */
  isApplicationOrigin(origin: string): Promise<boolean>;
  /** Reports whether pages of any origin may call what is for `clients`, because their application may be a stranger's. */
  isOpenToStrangers(): boolean;
  errorPage: ErrorShape;
  /** Runs before anything else is done for a request. @throws AuthError when the request is refused. */
  guard(ctx: Context, path: string | undefined): 'answered' | undefined | Promise<'answered' | undefined>;
  /** Counts the request against a limit. @throws AuthError 429 */
  takeLimit(ctx: Context, limit: Limit): Promise<void>;
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

// docs/understand/decisions/requests.md#a-path-is-compared-as-it-was-sent
/**
 * Answers the declared requests and no others. A path is compared as it was sent (RFC 3986 §6.2.1): one that differs
 * in case, in a slash or in percent-encoding is unknown. An unknown path is answered with 404, another method with
 * 405.
 * @throws Error for declarations that contradict one another.
 */
export function createRouter(routes: readonly Route[], deps: RouterDependencies): Middleware {
  const readerOf = bodyReaders(deps.readBody);
  const tree = routeTree(routes.map((route) => ({ ...route, read: readerOf(route.bodies ?? {}) })));
  const rules: Record<Route['cors'], Middleware> = {
    none: (_ctx, next) => next(),
    any: anyOrigin(),
    applications: applicationOrigins(deps.isApplicationOrigin),
    clients: clientOrigins(deps),
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
    const { limit } = route ?? first ?? area ?? { limit: httpLimits.other };
    if (limit !== 'unlimited') await deps.takeLimit(ctx, limit);
    if (found === undefined) throw new AuthError(404, 'not_found', 'There is nothing here.');
    if (route === undefined) {
      ctx.set('Allow', allowed(found.value));
      throw new AuthError(405, 'invalid_request', 'The method is not allowed here.');
    }
    if (found.value.byMethod.has('HEAD') === false && isPrefetch(ctx)) return refusePrefetch(ctx);
    if (route.cors === 'applications') await refuseForeignPages(deps, ctx);
    if (route.cors === 'clients') await markForeignPages(deps, ctx);
    ctx.params = found.params;
    const admitted = await receive(route, ctx);
    if (admitted === 'answered') return;
    for (const further of route.furtherLimits ?? []) await deps.takeLimit(ctx, further);
    const body = route.body && checkBody(ctx, route.body, route.errors);
    const handle = () => route.handle(ctx, { admitted, body });
    await (limit === 'unlimited' ? handle() : deps.work(handle));
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
async function receive(route: BoundRoute, ctx: Context): Promise<unknown> {
  const admitted = await route.admit?.(ctx);
  if (admitted === 'answered') return admitted;
  const hasArrived = ctx.req.complete;
  await route.read(ctx, noop);
  return hasArrived ? admitted : route.admit?.(ctx);
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

// docs/understand/decisions/requests.md#endpoints-that-applications-call-from-their-pages-refuse-other-pages
/** Refuses pages of other sites as {@link refuseForeignPages} does, or leaves their origin for the handler to judge. */
async function markForeignPages(deps: RouterDependencies, ctx: Context): Promise<void> {
  if (!deps.isOpenToStrangers()) return refuseForeignPages(deps, ctx);
  const origin = ctx.get('Origin');
  if (isSentByAnotherSite(ctx) && !(await deps.isApplicationOrigin(origin))) ctx.state.foreignPage = origin;
}

/**
 * Returns the origin of the page that sent a request, where it is none of the tenant's own applications: it may be that of an
 * application that registered itself, which the request names.
 */
export function foreignPage(ctx: Context): string | undefined {
  return ctx.state.foreignPage as string | undefined;
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

// docs/understand/decisions/requests.md#what-takes-effect-by-get-is-not-prefetched
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

// Bounds concurrent work: beyond the bound callers are refused, so that the others do not all become slow. A network has
// only a share of it.

/**
 * Limits how many pieces of work run at once.
 * @returns a function that runs one. Where the requester has its share, it throws AuthError 503 `temporarily_unavailable`.
 */
export function atMost(max: number): <T>(work: () => Promise<T> | T) => Promise<T> {
  const running = createShares<object>();
  return async (work) => {
    const { origin } = requester();
    if (!running.mayHold(origin, max)) {
      throw serverBusy();
    }
    const one = {};
    running.add(one, origin);
    try {
      return await work();
    } finally {
      running.delete(one);
    }
  };
}

// Checks a request body against the schema that its route declares.

/**
 * Parses a JSON or form body by a schema, without its null members: SDKs send null for what was left out.
 * @param errors the error shape of the route, which words the error.
 * @throws AuthError when the body does not match the schema.
 */
function checkBody(ctx: Context, schema: z.ZodType, errors: ErrorShape | 'page'): unknown {
  const body = bodyOf(ctx) ?? {};
  const isObject = typeof body === 'object' && !Array.isArray(body);
  const fields = Object.fromEntries(
    Object.entries(isObject ? body : {}).filter(([, value]) => value !== null),
  );
  const parsed = schema.safeParse(fields);
  if (isObject && parsed.success) return parsed.data;
  const faults = (parsed.error?.issues ?? []).map(({ path: [field], message }): BodyFault => {
    return { field: String(field), value: fields[String(field)], message };
  });
  const notObject = { field: undefined, value: body, message: 'must be an object' };
  const invalid = (errors === 'page' ? undefined : errors.invalid) ?? parameterFault;
  throw invalid(isObject ? faults : [notObject, ...faults]);
}

/** Reports the first fault, for endpoints that follow RFC 6749. */
function parameterFault([fault]: readonly BodyFault[]): AuthError {
  const { field, value = '' } = fault ?? {};
  const what = value === '' ? 'Missing required parameter' : 'Invalid parameter';
  const description = field === undefined ? 'The request body must be an object.' : `${what}: ${field}`;
  return new AuthError(400, 'invalid_request', description);
}

// Cross-origin requests of browser applications (Fetch "CORS protocol").

// docs/understand/decisions/requests.md#pages-of-applications-may-send-the-headers-of-tracing-libraries
/**
 * What tracing libraries add to every request of a page: W3C Trace Context and Baggage, and the headers of vendors that are
 * older. They say nothing here; without them in the list the browser does not send the request at all.
 */
const TRACING_HEADERS = [
  ...['traceparent', 'tracestate', 'baggage', 'sentry-trace', 'b3', 'newrelic', 'elastic-apm-traceparent'],
  ...['x-b3-traceid', 'x-b3-spanid', 'x-b3-parentspanid', 'x-b3-sampled', 'x-b3-flags'],
  ...['x-datadog-trace-id', 'x-datadog-parent-id', 'x-datadog-origin', 'x-datadog-sampling-priority'],
];

const ALLOWED_HEADERS = [
  ...['content-type', 'authorization', 'auth0-client', 'x-request-language', 'dpop'],
  ...TRACING_HEADERS,
];
const EXPOSED_HEADERS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'www-authenticate',
  'dpop-nonce',
  'location',
];

/** How long a browser may cache the answer to a preflight, seconds. */
const MAX_AGE = 3600;

/** Allows all origins, without credentials: for public documents (discovery, keys). */
function anyOrigin(): Middleware {
  return cors({ origin: '*', exposeHeaders: EXPOSED_HEADERS, maxAge: MAX_AGE });
}

/** Allows the origins of the tenant's applications, and all others without credentials where registration is open. */
function clientOrigins({ isApplicationOrigin, isOpenToStrangers }: RouterDependencies): Middleware {
  const known = applicationOrigins(isApplicationOrigin);
  const any = anyOrigin();
  return async (ctx, next) => {
    const isAny = isOpenToStrangers() && !(await isApplicationOrigin(ctx.get('Origin')));
    return (isAny ? any : known)(ctx, next);
  };
}

/**
 * Allows the origins of the tenant's applications, with credentials. Preflights of other origins are answered without
 * permission.
 * @param allowed reports whether the value of an `Origin` header is one of them.
 */
function applicationOrigins(allowed: (origin: string) => Promise<boolean>): Middleware {
  const answer = cors({
    origin: (ctx) => ctx.get('Origin'),
    credentials: true,
    allowMethods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowHeaders: ALLOWED_HEADERS,
    exposeHeaders: EXPOSED_HEADERS,
    maxAge: MAX_AGE,
  });
  const fromPage: Middleware = async (ctx, next) => {
    if (await allowed(ctx.get('Origin'))) return answer(ctx, next);
    ctx.vary('Origin');
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204;
      return;
    }
    await next();
    ctx.remove('Access-Control-Allow-Origin');
  };
  return (ctx, next) => {
    if (ctx.get('Origin') !== '') return fromPage(ctx, next);
    // A fast path: `ctx.vary` would parse the header that exists.
    if (ctx.res.hasHeader('Vary')) ctx.vary('Origin');
    else ctx.res.setHeader('Vary', 'Origin');
    return next();
  };
}

/**
 * Reports whether the browser states that a page of another site caused this request (Fetch Metadata §2.3). CORS
 * would only hide the response; the request would still take effect with the browser's cookies and address. Clients
 * other than browsers do not send the header.
 */
function isSentByAnotherSite(ctx: Context): boolean {
  const isSafe = ctx.method === 'GET' || ctx.method === 'HEAD' || ctx.method === 'OPTIONS';
  return !isSafe && ['cross-site', 'same-site'].includes(ctx.get('Sec-Fetch-Site'));
}

// Finds paths by their segments, compared as sent: without case folding or normalization.

interface Node<T> {
  literals: Map<string, Node<T>>;
  parameter: { name: string; node: Node<T> } | undefined;
  value: T | undefined;
}

interface PathTree<T> {
  root: Node<T>;
  /**
   * Returns the value at a path, creating it with `make` if there is none.
   * @param path `/` and segments; `:name` matches any one segment.
   * @throws Error when another path has a parameter of another name at this place.
   */
  add(path: string, make: () => T): T;
}

/** Creates an empty tree. */
function pathTree<T>(): PathTree<T> {
  const root = emptyNode<T>();
  return {
    root,
    add: (path, make) => {
      let node = root;
      for (const segment of segmentsOf(path)) node = childFor(node, segment, path);
      node.value ??= make();
      return node.value;
    },
  };
}

/**
 * Literal segments take precedence over parameters. A parameter matches one non-empty segment other than `.` and `..`,
 *   which proxies or clients may resolve (RFC 3986 §5.2.4), and is percent-decoded.
 * @param path as sent, percent-encoded.
 * @returns undefined when there is no such path.
 */
function findPath<T>(
  { root }: PathTree<T>,
  path: string,
): { value: T; params: Record<string, string> } | undefined {
  if (!path.startsWith('/')) return undefined;
  return find(root, segmentsOf(path), 0, {});
}

function find<T>(
  node: Node<T>,
  segments: readonly string[],
  index: number,
  params: Record<string, string>,
): { value: T; params: Record<string, string> } | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.value === undefined ? undefined : { value: node.value, params };
  const literal = node.literals.get(segment);
  const found = literal === undefined ? undefined : find(literal, segments, index + 1, params);
  if (found !== undefined || node.parameter === undefined) return found;
  const value = decodeSegment(segment);
  if (value === undefined) return undefined;
  return find(node.parameter.node, segments, index + 1, { ...params, [node.parameter.name]: value });
}

function decodeSegment(segment: string): string | undefined {
  try {
    const value = decodeURIComponent(segment);
    return value === '' || value === '.' || value === '..' ? undefined : value;
  } catch {
    return undefined;
  }
}

function segmentsOf(path: string): string[] {
  return path.slice(1).split('/');
}

function childFor<T>(node: Node<T>, segment: string, path: string): Node<T> {
  if (segment.startsWith(':')) {
    const name = segment.slice(1);
    node.parameter ??= { name, node: emptyNode() };
    if (node.parameter.name === name) return node.parameter.node;
    throw new Error(`${path}: this segment is called :${node.parameter.name} elsewhere`);
  }
  const child = node.literals.get(segment) ?? emptyNode<T>();
  node.literals.set(segment, child);
  return child;
}

function emptyNode<T>(): Node<T> {
  return { literals: new Map(), parameter: undefined, value: undefined };
}

// Declares which requests exist. Every feature declares its routes as data: method and path with their limit, CORS
// rule and error shape, so that no spelling of a path can reach a handler without them.

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface RouteRules {
  /** The bucket, per address, that a request takes from before its body is read; `unlimited` for none. */
  limit: Limit | 'unlimited';
  /**
   * Further buckets, per address, that are taken from after the body was read, and only by requests that are handled.
   */
  furtherLimits?: readonly Limit[];
  /** Which other origins' scripts may call the route; the same for every method of a path. */
  /** `clients`: the handler refuses what comes from a page of another application ({@link foreignPage}). */
  cors: 'none' | 'applications' | 'clients' | 'any';
  /** Writes its errors; `page` for the error page. */
  errors: ErrorShape | 'page';
  /** The accepted bodies, where they differ from the default. */
  bodies?: BodyRules;
}

/** What a handler is given. @template A what `admit` found. @template B the body as its schema parsed it. */
interface Received<A, B> {
  admitted: A;
  body: B;
}

/** A request, or several methods of one path with the same handler. */
export interface Route extends RouteRules {
  /** Includes `HEAD` only where a GET of the path changes nothing; otherwise HEAD is answered with 405. */
  methods: readonly Method[];
  /** Segments after slashes; `:name` matches any one segment, whose text is in `ctx.params`. */
  path: string;
  /** The schema that the router checks the body against. */
  body?: z.ZodType | undefined;
  admit?: ((ctx: Context) => Promise<unknown>) | undefined;
  handle(ctx: Context, received: Received<unknown, unknown>): Promise<unknown> | unknown;
}

interface RouteDescription {
  /** One line. A route without it is not part of the API: only the server's own pages use it. */
  summary?: string;
  /** Names of the document's security schemes, any one of which is enough. */
  security?: readonly SecurityScheme[];
  query?: z.ZodObject;
  // docs/understand/decisions/requests.md#a-body-is-checked-in-one-place-if-its-schema-can-say-everything-about-it
  /** The schema of a body that the handler checks itself, because it says in its own words what is wrong. */
  uncheckedBody?: z.ZodType;
  /** The accepted media types of the body; by default both. */
  bodyTypes?: readonly ('json' | 'form')[];
  /** By status: a short description, and the schema of the body that comes with it. */
  answers?: Readonly<Record<number, string | { description: string; body: z.ZodType; type?: string }>>;
}

/** How a caller authenticates: with credentials, or with a token. */
type SecurityScheme = 'client' | 'accessToken' | 'mfaToken' | 'device';

/**
 * A route with the types that its parts share.
 * @template D the dependencies of its handler.
 * @template A what `admit` found. @template B the body as its schema parsed it.
 */
export interface TypedRoute<D, A = unknown, B = unknown> extends RouteRules, RouteDescription {
  /** The schema that the router checks the body against. The route's error shape words the errors. */
  body?: z.ZodType<B>;
  /**
   * Runs before the body is read, so that the bodies of refused requests are not read. Runs again after a body that
   * had to be waited for, so that nothing it found out is older than the whole request. Returns `answered` when it
   * has responded, by a redirect for example.
   * @throws AuthError when the request is refused.
   */
  admit?: (deps: D, ctx: Context) => Promise<A | 'answered'>;
  handle: (deps: D, ctx: Context, received: Received<A, B>) => Promise<unknown> | unknown;
}

declare const made: unique symbol;

/** A route as a feature declares it. Only {@link route} makes one with `admit` or `body`, so that its handler is given them. */
export type RouteDeclaration<D> =
  | (TypedRoute<D> & { readonly [made]: true })
  | (TypedRoute<D> & { admit?: never; body?: never });

/** What a handler with types of its own needs beside it: they come from nowhere else. */
type Sources<A, B> = (unknown extends A ? unknown : { admit: unknown }) & BodySource<B>;
export type BodySource<B> = unknown extends B ? unknown : { body: unknown };

/** Declares a route whose handler is given what `admit` found and the parsed body, each of its type. */
export function route<D, A = unknown, B = unknown>(
  declaration: TypedRoute<D, A, B> & Sources<NoInfer<A>, NoInfer<B>>,
): RouteDeclaration<D> {
  // The types are forgotten, because routes of many types are in one list. The router gives a handler nothing but
  // what the `admit` and `body` beside it made.
  return declaration as unknown as RouteDeclaration<D>;
}

/** Routes by `GET /path`, or by `GET|HEAD /path` for methods with the same handler. */
export type RouteDeclarations<D> = Readonly<Record<`${Method}${string} /${string}`, RouteDeclaration<D>>>;

/** Binds a feature's routes to its dependencies. @throws Error when a key is not a method and a path. */
export function bindRoutes<D>(declared: RouteDeclarations<D>, deps: D): Route[] {
  return Object.entries(declared).map(([key, { admit, handle, ...rules }]) => ({
    ...parseRouteKey(key),
    limit: rules.limit,
    ...(rules.furtherLimits && { furtherLimits: rules.furtherLimits }),
    cors: rules.cors,
    errors: rules.errors,
    ...(rules.bodies && { bodies: rules.bodies }),
    body: rules.body,
    admit: admit && ((ctx) => admit(deps, ctx)),
    handle: (ctx, received) => handle(deps, ctx, received),
  }));
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] satisfies Method[];

/** Returns the methods and the path of a declaration's key. @throws Error when it has none. */
export function parseRouteKey(key: string): Pick<Route, 'methods' | 'path'> {
  const [methods = '', path = '', ...more] = key.split(' ');
  const named = methods.split('|');
  if (more.length > 0 || !path.startsWith('/') || !named.every((one) => METHODS.includes(one))) {
    throw new Error(`${key} is no method and path`);
  }
  return { methods: named as Method[], path };
}

/** The rules that all pages for people share. */
export const PAGE = { limit: httpLimits.hosted, cors: 'none', errors: 'page' } as const;

/** A part of the tree of paths with common rules for unknown paths. */
export interface Area extends Pick<RouteRules, 'limit' | 'errors'> {
  /** What its paths begin with. */
  prefix: string;
}

// Bounds the memory that long request bodies take: a few are read and handled at once, shared among networks.

/**
 * Limits how many requests have a long body at once, from the time it is read until the request is answered.
 * @param max how many.
 * @param usualBytes the length that counts as long; a body that does not say its length counts as long, too.
 * @returns a function that limits a reader of bodies. Where the requester has its share, that throws AuthError 503
 * `temporarily_unavailable`.
 */
export function limitLongBodies(max: number, usualBytes: number): (read: Middleware) => Middleware {
  const held = createShares<Context>();
  return (read) => (ctx, next) => {
    const { 'transfer-encoding': coding, 'content-length': length } = ctx.req.headers;
    if (coding === undefined && Number(length ?? 0) <= usualBytes) return read(ctx, next);
    const { origin } = requester();
    if (!held.mayHold(origin, max)) throw serverBusy();
    held.add(ctx, origin);
    ctx.res.once('close', () => held.delete(ctx));
    return read(ctx, next);
  };
}
