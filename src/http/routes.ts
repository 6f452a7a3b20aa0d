// Which requests exist. Every feature declares its own as data: method and path, and beside them the limit, the
// rule for other origins and the shape of failures, so that no spelling of a path can have one without the other.
import type { Context } from 'koa';
import type { z } from 'zod';
import type { BodyRules } from './body.ts';
import type { ErrorShape } from './errors.ts';

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

/** Whether a request goes on to its handler. */
// biome-ignore lint/suspicious/noConfusingVoidType: most return nothing
type Admission = void | 'answered';

/** One request, or several of one path that are handled alike. */
export interface Route extends RouteRules {
  /** `HEAD` stands here only where asking about an address changes nothing. */
  methods: readonly Method[];
  /** Segments after slashes; `:name` is one segment of any text, which the handler finds in `ctx.params`. */
  path: string;
  /** What its body must be, where the router checks it. */
  body?: z.ZodType | undefined;
  /** Asked before the body is read, so that strangers do not have it read; `answered` where they are sent elsewhere. @throws AuthError */
  admit?(ctx: Context): Promise<Admission>;
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
  /** Asked before the body is read, so that strangers do not have it read; `answered` where they are sent elsewhere. @throws AuthError */
  admit?: (deps: D, ctx: Context) => Promise<Admission>;
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
  return Object.entries(declared).map(([key, { admit, ...route }]) => ({
    ...addressOf(key),
    limit: route.limit,
    ...(route.also && { also: route.also }),
    cors: route.cors,
    errors: route.errors,
    ...(route.bodies && { bodies: route.bodies }),
    body: route.isBodyChecked === true ? route.body : undefined,
    ...(admit && { admit: (ctx: Context) => admit(deps, ctx) }),
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

/** A part of the tree of paths. */
export interface Area extends Pick<RouteRules, 'limit' | 'errors'> {
  /** What its paths begin with. */
  below: string;
}
