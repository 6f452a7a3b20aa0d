// How a request reaches the route that answers it: limits, bodies, shapes of errors, and the console's own host.
import type { Context, Middleware } from 'koa';
import { networkGuard } from '../capabilities/protection/network-acls.ts';
import { connectingAddressOf } from '../capabilities/tls/edge.ts';
import { consoleFeature, errorPageInConsole } from '../features/console/feature.ts';
import { loginRouteFor } from '../features/flow/login-route.ts';
import { PROBE_PATHS } from '../features/health.ts';
import { bodyReader } from '../http/body.ts';
import type { ErrorShape } from '../http/errors.ts';
import { tenantHostOf } from '../http/request-target.ts';
import { createRouter, limitLongBodies, parseRouteKey, type Route } from '../http/router.ts';
import { CONSOLE_CLIENT } from '../records/administrators.ts';
import type { Capabilities } from './capabilities.ts';
import { FEATURES } from './features.ts';

// docs/decisions/requests.md#bodies-are-small-and-plain
/** Largest request body, bytes. Bodies of the endpoints are small; the engine itself accepts at most 56 KiB. */
export const MAX_BODY_BYTES = 56 * 1024;

/** How many requests of authenticated programs may have a longer one at once. The longest is a few MiB. */
const MAX_LONG_BODIES = 16;

/** How many requests are worked on at once. It is above the number that may wait for a password hash, which takes longest. */
const MAX_CONCURRENT = 1_000;

/** The routes that operators need, whatever the tenant's network access control lists say. */
const FOR_OPERATORS: ReadonlySet<string> = new Set([
  ...PROBE_PATHS,
  ...Object.keys(consoleFeature.routes).map((key) => parseRouteKey(key).path),
]);

const isForOperators = (path = ''): boolean => FOR_OPERATORS.has(path) || path.startsWith('/assets/');

/** The pages of a waiting authorization request, and where it goes on. */
const WAITING = /^\/(?:u|authorize)\/([^/]+)/;

/**
 * Returns the function that tells whether a request belongs to a login to the console, which begins at the tenant's own
 * authorization endpoint: an administrator who has locked out themselves has to log in to correct that.
 */
function consoleLogin({ waitingRequests }: Pick<Capabilities, 'waitingRequests'>) {
  return async (ctx: Context): Promise<boolean> => {
    if (ctx.path === '/authorize') return ctx.method === 'GET' && ctx.query.client_id === CONSOLE_CLIENT;
    const [, uid] = WAITING.exec(ctx.path) ?? [];
    if (uid === undefined) return false;
    const waiting = await waitingRequests.find(ctx, uid).catch(() => undefined);
    return waiting?.clientId === CONSOLE_CLIENT;
  };
}

/**
 * Returns how errors are shown to browsers: a login request that is over leads to its application, everything else is shown
 * within the console for administrators who are logged in there, otherwise on the error page.
 */
function errorPageOf(capabilities: Capabilities): ErrorShape {
  return errorPageInConsole(capabilities, async (ctx, error) => {
    const route = await loginRouteFor(capabilities, ctx, error);
    if (route === undefined) return capabilities.views.error(ctx, error);
    ctx.redirect(route);
    if (ctx.method !== 'GET') ctx.status = 303;
  });
}

/** Makes the middleware that answers the requests of a tenant's routes. */
export function routing(routes: readonly Route[], capabilities: Capabilities) {
  const { config, events, log, rateLimits } = capabilities;
  const askLists = networkGuard({
    config,
    events,
    connectingAddress: connectingAddressOf,
    isConsoleLogin: consoleLogin(capabilities),
  });
  const limited = limitLongBodies(MAX_LONG_BODIES, MAX_BODY_BYTES);
  const router = (some: readonly Route[]) =>
    createRouter(some, {
      log,
      isApplicationOrigin: config.isApplicationOrigin,
      errorPage: errorPageOf(capabilities),
      // An administrator who has locked out themselves by a list can still log in to the console to correct it.
      guard: (ctx, path) => (isForOperators(path) ? undefined : askLists(ctx)),
      takeLimit: (ctx, limit) => rateLimits.takeFrom(ctx, limit),
      readBody: (rules) => {
        const read = bodyReader({ maxBytes: MAX_BODY_BYTES, ...rules });
        return rules.isShared === true ? limited(read) : read;
      },
      areas: FEATURES.flatMap(({ area = [] }) => area),
      maxConcurrent: MAX_CONCURRENT,
    });
  return consoleAtItsHost(routes, capabilities, router);
}

/**
 * Makes the routing by host. Where the console has a host of its own, requests there are answered by the console's
 * routes alone, and all others by the rest. Scripts on the tenant's pages then run at another origin than the console.
 * @param router makes the middleware that answers the requests of some routes.
 */
function consoleAtItsHost(
  routes: readonly Route[],
  { baseUrl, consoleUrl }: Pick<Capabilities, 'baseUrl' | 'consoleUrl'>,
  router: (some: readonly Route[]) => Middleware,
): Middleware {
  if (consoleUrl === baseUrl) return router(routes);
  const consolePaths = new Set(Object.keys(consoleFeature.routes).map((key) => parseRouteKey(key).path));
  const isShared = ({ path }: Route) => path.startsWith('/assets/') || PROBE_PATHS.includes(path);
  const own = router(routes.filter((one) => consolePaths.has(one.path) || isShared(one)));
  const others = router(routes.filter(({ path }) => !consolePaths.has(path)));
  const { host } = new URL(consoleUrl);
  return (ctx, next) => (tenantHostOf(ctx).host === host ? own : others)(ctx, next);
}
