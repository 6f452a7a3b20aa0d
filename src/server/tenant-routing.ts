// How a request reaches the route that answers it: limits, bodies, shapes of errors, and the console's own host.
import type { Context } from 'koa';
import { networkGuard } from '../capabilities/protection/network-acls.ts';
import { connectingAddressOf } from '../capabilities/tls/edge.ts';
import { accountArea } from '../features/account/feature.ts';
import { consoleFeature } from '../features/console/feature.ts';
import { PROBE_PATHS } from '../features/health.ts';
import { managementArea } from '../features/management/feature.ts';
import { bodyReader } from '../http/body.ts';
import { createRouter, limitLongBodies, parseRouteKey, type Route } from '../http/router.ts';
import { CONSOLE_CLIENT } from '../records/administrators.ts';
import type { LimitName } from '../records/limits.ts';
import type { Capabilities, ServedDependencies } from './capabilities.ts';
import { LIMITS } from './features.ts';
import { consoleAtItsHost, errorPageOf } from './tenant-console.ts';
import type { TenantEngine } from './tenant-engine.ts';

/** Largest request body, bytes. Bodies of the endpoints are small; the engine itself accepts at most 56 KiB. */
export const MAX_BODY_BYTES = 56 * 1024;

/** How many requests of authenticated programs may have a longer one at once. The longest is a few MiB. */
const MAX_LONG_BODIES = 16;

/** How many requests are worked on at once. It is above the number that may wait for a password hash, which takes longest. */
const MAX_CONCURRENT = 1_000;

/** The routes that operators need, whatever the tenant's network access control lists say. */
const FOR_OPERATORS: ReadonlySet<string> = new Set([
  ...PROBE_PATHS,
  ...Object.keys(consoleFeature.routes ?? {}).map((key) => parseRouteKey(key).path),
]);

const isForOperators = (path = ''): boolean => FOR_OPERATORS.has(path) || path.startsWith('/assets/');

/** The pages of a waiting authorization request, and where it goes on. */
const WAITING = /^\/(?:u|authorize)\/([^/]+)/;

/**
 * Returns the function that tells whether a request belongs to a login to the console, which begins at the tenant's own
 * authorization endpoint: an administrator who has locked out themselves has to log in to correct that.
 */
function consoleLogin({ engine }: Pick<TenantEngine, 'engine'>) {
  return async (ctx: Context): Promise<boolean> => {
    if (ctx.path === '/authorize') return ctx.method === 'GET' && ctx.query.client_id === CONSOLE_CLIENT;
    const [, uid] = WAITING.exec(ctx.path) ?? [];
    if (uid === undefined) return false;
    const waiting = await engine.interactions.find(ctx, uid).catch(() => undefined);
    return waiting?.clientId === CONSOLE_CLIENT;
  };
}

/** Makes the middleware that answers the requests of a tenant's routes. */
export function routing(
  routes: readonly Route[],
  deps: ServedDependencies,
  capabilities: Capabilities,
  tenantEngine: TenantEngine,
) {
  const { config, events, rateLimits } = capabilities;
  const askLists = networkGuard({
    config,
    events,
    connectingAddress: connectingAddressOf,
    isConsoleLogin: consoleLogin(tenantEngine),
  });
  const limited = limitLongBodies(MAX_LONG_BODIES, MAX_BODY_BYTES);
  const router = (some: readonly Route[]) =>
    createRouter(some, {
      log: deps.log,
      isApplicationOrigin: config.isApplicationOrigin,
      errorPage: errorPageOf(deps, capabilities, tenantEngine),
      isLimit: (name) => Object.hasOwn(LIMITS, name),
      // An administrator who has locked out themselves by a list can still log in to the console to correct it.
      guard: (ctx, path) => (isForOperators(path) ? undefined : askLists(ctx)),
      // The router has checked at the start that the limit exists.
      takeLimit: (ctx, name) => rateLimits.takeFrom(ctx, name as LimitName),
      readBody: (rules) => {
        const read = bodyReader({ maxBytes: MAX_BODY_BYTES, ...rules });
        return rules.isShared === true ? limited(read) : read;
      },
      areas: [managementArea, accountArea],
      maxConcurrent: MAX_CONCURRENT,
    });
  return consoleAtItsHost(routes, deps.settings, router);
}
