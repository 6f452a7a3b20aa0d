// Declares which requests exist. Every feature declares its routes as data: method and path with their limit, CORS
// rule and error shape, so that no spelling of a path can reach a handler without them.
import type { Context } from 'koa';
import type { z } from 'zod';
import type { BodyRules } from './body.ts';
import type { ErrorShape } from './errors.ts';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The rules of a route. */
interface RouteRules {
  /** The bucket, per address, that a request takes from before its body is read; `unlimited` for none. */
  limit: string;
  /**
   * Further buckets, per address, that are taken from after the body was read, and only by requests that are handled.
   */
  furtherLimits?: readonly string[];
  /** Which other origins' scripts may call the route; the same for every method of a path. */
  cors: 'none' | 'applications' | 'any';
  /** Writes its errors; `page` for the error page. */
  errors: ErrorShape | 'page';
  /** The accepted bodies, where they differ from the default. */
  bodies?: BodyRules;
}

/** The outcome of {@link Route.admit}; `answered` when the handler is not to run. */
// biome-ignore lint/suspicious/noConfusingVoidType: most return nothing
export type Admission = void | 'answered';

/** A request, or several methods of one path with the same handler. */
export interface Route extends RouteRules {
  /** Includes `HEAD` only where a GET of the path changes nothing; otherwise HEAD is answered with 405. */
  methods: readonly Method[];
  /** Segments after slashes; `:name` matches any one segment, whose text is in `ctx.params`. */
  path: string;
  /** The schema that the router checks the body against. */
  body?: z.ZodType | undefined;
  /**
   * Runs before the body is read, so that the bodies of refused requests are not read. Runs again after a body that
   * had to be waited for, so that nothing it found out is older than the whole request. Returns `answered` when it
   * has responded, by a redirect for example.
   * @throws AuthError when the request is refused.
   */
  admit?(ctx: Context): Promise<Admission>;
  handle(ctx: Context): Promise<unknown> | unknown;
}

/** What the API document says of a route. */
interface RouteDescription {
  /** One line. A route without it is not part of the API: only the server's own pages use it. */
  summary?: string;
  /** Names of the document's security schemes, any one of which is enough. */
  security?: readonly SecurityScheme[];
  query?: z.ZodObject;
  /** The schema of the body. The handler checks it, unless it was declared by {@link withBody}. */
  body?: z.ZodType;
  /** The accepted media types of the body; by default both. */
  bodyTypes?: readonly ('json' | 'form')[];
  /** By status: a short description, and the schema of the body that comes with it. */
  answers?: Readonly<Record<number, string | { description: string; body: z.ZodType; type?: string }>>;
}

/** How a caller authenticates: with credentials, or with a token. */
type SecurityScheme = 'client' | 'accessToken' | 'mfaToken' | 'device';

/** A route as a feature declares it. @template D the dependencies of its handler. */
export interface RouteDeclaration<D> extends RouteRules, RouteDescription {
  /** Whether the router checks the body before it calls the handler. */
  isBodyChecked?: boolean;
  /** As {@link Route.admit}. */
  admit?: (deps: D, ctx: Context) => Promise<Admission>;
  handle: (deps: D, ctx: Context) => Promise<unknown> | unknown;
}

/**
 * Declares a body that the router checks before it calls the handler, which receives the parsed body. The route's
 * error shape words the errors.
 */
export function withBody<D, B extends z.ZodType>(
  body: B,
  handle: (deps: D, ctx: Context, body: z.output<B>) => Promise<unknown> | unknown,
): Required<Pick<RouteDeclaration<D>, 'body' | 'isBodyChecked' | 'handle'>> {
  return {
    body,
    isBodyChecked: true,
    handle: (deps, ctx) => handle(deps, ctx, ctx.state.body as z.output<B>),
  };
}

/** Routes by `GET /path`, or by `GET|HEAD /path` for methods with the same handler. */
export type RouteDeclarations<D> = Readonly<Record<`${Method}${string} /${string}`, RouteDeclaration<D>>>;

/** Binds a feature's routes to its dependencies. @throws Error when a key is not a method and a path. */
export function bindRoutes<D>(declared: RouteDeclarations<D>, deps: D): Route[] {
  return Object.entries(declared).map(([key, { admit, ...route }]) => ({
    ...parseRouteKey(key),
    limit: route.limit,
    ...(route.furtherLimits && { furtherLimits: route.furtherLimits }),
    cors: route.cors,
    errors: route.errors,
    ...(route.bodies && { bodies: route.bodies }),
    body: route.isBodyChecked === true ? route.body : undefined,
    ...(admit && { admit: (ctx: Context) => admit(deps, ctx) }),
    handle: (ctx) => route.handle(deps, ctx),
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
export const PAGE = { limit: 'hosted', cors: 'none', errors: 'page' } as const;

/** A part of the tree of paths with common rules for unknown paths. */
export interface Area extends Pick<RouteRules, 'limit' | 'errors'> {
  /** What its paths begin with. */
  prefix: string;
}
