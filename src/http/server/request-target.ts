// Checks the request target and the Host (RFC 9112 §3.2) before anything else reads them.

import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { AuthError, oauthShape } from '../errors.ts';

// A value that one part of the server leaves with a request for a later one, where no call joins them: the engine or
// another middleware is between. What a route's own `admit` finds is handed to its handler instead (router.ts).

/** The context of a request; the engine's has the same `state`. */
type Carrier = Pick<Context, 'state'>;

export interface RequestValue<T> {
  of(ctx: Carrier): T | undefined;
  /** @param value undefined to forget it. */
  set(ctx: Carrier, value: T | undefined): void;
}

/** Makes a value that requests can have. @param name what it is, for a debugger. */
export function requestValue<T>(name: string): RequestValue<T> {
  // Nobody else has the symbol, so that what is found under it is what was set.
  const key = Symbol(name);
  const stateOf = ({ state }: Carrier) => state as { [key]?: T | undefined };
  return {
    of: (ctx) => stateOf(ctx)[key],
    set: (ctx, value) => {
      stateOf(ctx)[key] = value;
    },
  };
}

/** A path and query of visible characters, which every parser splits in the same way. */
const ORIGIN_FORM = /^\/[^\s#\\]*$/;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#\s\\]+)(?=[/?]|$)/i;

/**
 * Accepts the origin form, and reduces the absolute form to its path and query. Answers 400 to others (asterisk form,
 * fragments, white space), and to a request that does not name one host: an invalid Host, two of them, or one that is not
 * that of the target. Proxies would choose otherwise than we do.
 */
export function requestTarget(): Middleware {
  return (ctx, next) => {
    const { req } = ctx;
    const target = readTarget(req.url ?? '');
    const host = readHost(req);
    const isOneHost = host !== INVALID && (target?.host === undefined || target.host === host);
    if (target === undefined || !isOneHost) {
      // Later handlers and the log parse the address.
      req.url = '/';
      const what =
        target === undefined ? 'The request target is no path.' : 'The request names no host, or two.';
      return oauthShape(ctx, new AuthError(400, 'invalid_request', what));
    }
    if (target.path !== req.url) req.url = target.path;
    if (host !== req.headers.host) req.headers.host = host;
    return next();
  };
}

interface Target {
  path: string;
  /** Of the absolute form. */
  host?: string;
}

function readTarget(url: string): Target | undefined {
  if (ORIGIN_FORM.test(url)) return { path: url };
  const [start, authority = ''] = ABSOLUTE_FORM.exec(url) ?? [];
  const host = normalHost(authority);
  if (start === undefined || host === undefined) return undefined;
  const rest = url.slice(start.length);
  const path = rest.startsWith('/') ? rest : `/${rest}`;
  return ORIGIN_FORM.test(path) ? { path, host } : undefined;
}

const INVALID = Symbol('an invalid Host');

/** Returns the host; undefined where there is none, as HTTP/1.0 allows. Node.js keeps the first of several in `headers`. */
function readHost({ headers, rawHeaders }: IncomingMessage): string | undefined | typeof INVALID {
  let lines = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') lines++;
  }
  if (lines > 1) return INVALID;
  return headers.host === undefined ? undefined : (normalHost(headers.host) ?? INVALID);
}

// The host of a request. Anybody may write any name into `Host`, so it is judged once, against the hosts that the tenant is
// served at, and replaced: whatever reads it later, also in libraries, gets one of those.

interface TenantHost {
  /** In lower case, with its port unless that is 443. */
  host: string;
  hostname: string;
  origin: string;
  /** Whether it is a custom domain, or the host of mutual TLS. */
  isCustom: boolean;
  /** Whether the request was sent to this host; otherwise it named none of the tenant, and this is the tenant's own. */
  isRequested: boolean;
}

interface TenantHosts {
  baseUrl: string;
  /** The origin of the console, which may be `baseUrl`. */
  consoleUrl: string;
  /** Returns the origins of the custom domains, and of mutual TLS. */
  customOrigins(): readonly string[];
}

/** The `uri-host` and port of a Host (RFC 9110 §7.2), as names and addresses are written that can be resolved. */
const HOST = /^(?:[a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Returns a host in the form of {@link TenantHost.host}.
 * @param value a Host, or the authority of a request target.
 * @returns undefined for an invalid one.
 */
function normalHost(value: string): string | undefined {
  if (!HOST.test(value)) return undefined;
  // The dot at the end of an absolute name (RFC 1034 §3.1) makes no other host.
  return URL.parse(`https://${value}`)?.host.replace(/\.(?=:|$)/, '') || undefined;
}

const judgedHost = requestValue<TenantHost>('host of the tenant');

// docs/understand/decisions/requests.md#the-host-of-a-request-is-one-of-the-tenants-own
/**
 * Finds the tenant's host of each request and leaves it for {@link tenantHostOf} and in the header. Requests for other
 * names count as for the tenant's own: an edge or a health check may request another one.
 */
export function tenantHost({ baseUrl, consoleUrl, customOrigins }: TenantHosts): Middleware {
  const own = hostOf(baseUrl, false);
  const unknown = { ...own, isRequested: false };
  const ofConsole = hostOf(consoleUrl, false);
  const find = (requested: string | undefined): TenantHost => {
    if (requested === own.host) return own;
    if (requested === ofConsole.host) return ofConsole;
    const origin = customOrigins().find((one) => one === `https://${requested}`);
    return origin === undefined ? unknown : hostOf(origin, true);
  };
  return (ctx, next) => {
    const { headers } = ctx.req;
    const found = find(headers.host);
    judgedHost.set(ctx, found);
    headers.host = found.host;
    return next();
  };
}

function hostOf(address: string, isCustom: boolean): TenantHost {
  const { host, hostname, origin } = new URL(address);
  return { host, hostname, origin, isCustom, isRequested: true };
}

export function tenantHostOf(ctx: Pick<Context, 'state'>): TenantHost {
  const found = judgedHost.of(ctx);
  if (found === undefined) throw new Error('the host of the request was not judged');
  return found;
}
