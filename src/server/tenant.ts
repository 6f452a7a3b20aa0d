// One tenant: its parts, the engine that calls into them, all capabilities together, the routes of the features that use these,
// and what every request passes on its way to a route.

import { join } from 'node:path';
import type Koa from 'koa';
import type { Context, Middleware } from 'koa';
import { warnOfMissingPackages } from '../capabilities/actions/warn-of-packages.ts';
import { networkGuard } from '../capabilities/protection/network-acls.ts';
import { connectingAddressOf } from '../capabilities/tls/edge.ts';
import { trustedBy, trustedHeaders } from '../capabilities/tls/trusted-headers.ts';
import { waitForEarlyProofs } from '../engine/binding/proof-of-possession.ts';
import { createEngine, type Engine } from '../engine/provider/provider.ts';
import { createLogoutChannels } from '../engine/session/logout-channels.ts';
import { consoleFeature, errorPageInConsole } from '../features/console/console-feature.ts';
import { loginRouteFor } from '../features/flow/login-route.ts';
import { PROBE_PATHS } from '../features/health.ts';
import { resumeClientRemovals } from '../features/management/client-removal.ts';
import { resumeConnectionRemovals } from '../features/management/connection-removal.ts';
import { startLogStreams } from '../features/management/log-streams/streams.ts';
import { resumePermissionRemovals } from '../features/management/permission-removal.ts';
import { originOf } from '../http/addresses.ts';
import type { ErrorShape } from '../http/errors.ts';
import {
  closeUnread,
  createApplication,
  securityHeaders,
  watchRequests,
} from '../http/server/application.ts';
import { bodyReader } from '../http/server/body.ts';
import { tenantHost, tenantHostOf } from '../http/server/request-target.ts';
import { createRouter, limitLongBodies, parseRouteKey, type Route } from '../http/server/router.ts';
import { CONSOLE_CLIENT } from '../records/users/administrators.ts';
import type { Deadline } from '../runtime/deadline.ts';
import { askedBy } from '../runtime/requester.ts';
import type { Store } from '../store/contract.ts';
import type { Events } from '../tenant/events.ts';
import { type Capabilities, createCapabilities } from './capabilities.ts';
import { declaredBy, FEATURES } from './features.ts';
import { createParts, type TenantDependencies } from './parts.ts';
import { finishWork } from './stop.ts';

// How a request reaches the route that answers it: limits, bodies, shapes of errors, and the console's own host.

// docs/understand/decisions/requests.md#bodies-are-small-and-plain
/** Largest request body, bytes. Bodies of the endpoints are small; the engine itself accepts at most 56 KiB. */
const MAX_BODY_BYTES = 56 * 1024;

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
function routing(routes: readonly Route[], capabilities: Capabilities) {
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
      isOpenToStrangers: () => {
        const { flags, client_id_metadata_document_supported: readsDocuments } = config.settings().tenant;
        return flags.enable_dynamic_client_registration === true || readsDocuments === true;
      },
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

export interface Tenant {
  app: Koa;
  routes: readonly Route[];
  endBlocked(userId: string): Promise<void>;
  events: Pick<Events, 'record'>;
  /** Asks the providers of all connections, in the background, whether they answer. */
  checkConnections(): Promise<void>;
  /** Completes removals of connections and APIs that were begun and not finished. */
  completeRemovals(): Promise<void>;
  /** As completeRemovals, in the background. */
  resumeRemovals(): void;
  /** Ends long-lived responses, such as event streams, because the server is about to stop. */
  drain(): void;
  /** Waits for background work until it is done or the deadline has passed. The caller closes the store. */
  close(deadline?: Deadline): Promise<void>;
  /** Whether a thread was told to end and has not ended: the end of the process would wait for it. */
  isHeldUp(): boolean;
}

/** @throws Error when the store holds no tenant, or an application cannot be served. */
export async function createTenant(deps: TenantDependencies): Promise<Tenant> {
  const ending = new AbortController();
  const parts = await createParts(deps, declaredBy(deps.settings), {
    ending: ending.signal,
    engine: () => engine,
  });
  const called = FEATURES.map((one) => one.engine(parts));
  const grants = called.flatMap((one) => one.grants);
  const channels = called.flatMap((one) => one.logoutChannels);
  const engine: Engine = await createEngine({
    ...parts,
    measures: deps.metrics?.measures,
    grants,
    errorPage: (ctx, error) => parts.views.error(ctx, error),
    logoutChannels: createLogoutChannels(channels, parts.log),
  });
  const capabilities = createCapabilities(deps, parts, { engine, grants });
  const routes = [...capabilities.views.assets.routes, ...FEATURES.flatMap((one) => one.serve(capabilities))];
  startWork(deps, capabilities);
  const { background, directories, endBlocked, events, providers, scripts, views, xml } = capabilities;
  const completeRemovals = () => resumeRecordRemovals(capabilities);
  const threads = [scripts, views.liquid, xml];
  return {
    app: applicationOf(deps, capabilities, routes),
    routes,
    endBlocked,
    events,
    checkConnections: providers.checkAll,
    completeRemovals,
    resumeRemovals: () => background.run('removals that were noted', completeRemovals),
    drain: () => ending.abort(),
    close: async (deadline) => {
      await finishWork(capabilities, deadline);
      const closing = [...threads, directories].map((one) => one.close());
      await Promise.all([...closing, engine.storeUsedProofs()]);
    },
    isHeldUp: () => threads.some((one) => one.isHeldUp()),
  };
}

/** What every request passes, in this order. */
function applicationOf(
  { settings, tracing }: TenantDependencies,
  capabilities: Capabilities,
  routes: readonly Route[],
): Koa {
  const { baseUrl, config, consoleUrl, log, metrics, reuseAfterLimit } = capabilities;
  const app = createApplication(log);
  app.use(securityHeaders({ hsts: new URL(baseUrl).hostname !== 'localhost' }));
  app.use(closeUnread(MAX_BODY_BYTES));
  for (const one of trustedHeaders({ ...capabilities, tls: settings.tls, probes: PROBE_PATHS })) app.use(one);
  for (const one of watchRequests({ ...capabilities, tracing, metrics }, trustedBy(settings.tls)))
    app.use(one);
  app.use((ctx, next) => askedBy({ id: ctx.state.requestId, origin: () => originOf(ctx.ip) }, next));
  app.use(waitForEarlyProofs(capabilities));
  app.use(reuseAfterLimit);
  // A change of the configuration is in force for every request that arrives after it.
  app.use((_ctx, next) => config.refresh()?.then(next) ?? next());
  app.use(tenantHost({ baseUrl, consoleUrl, customOrigins: config.customOrigins }));
  app.use(routing(routes, capabilities));
  return app;
}

/** How often removals that other processes have left are looked for, milliseconds. */
const RESUME_INTERVAL = 60_000;

/** Starts what runs in the background, and resumes what the last stop cut short: removals, imports, deliveries. */
function startWork({ settings, metrics }: TenantDependencies, capabilities: Capabilities): void {
  const { background, clock, deliveries, ending, jobs, leases, store, tenantConfig, tenantUsers } =
    capabilities;
  const shown = { ...capabilities, config: tenantConfig, users: tenantUsers };
  startLogStreams({
    ...shown,
    // The clock that the events' ids are made with.
    clock: store.sharedClock ?? clock,
    filesDirectory: settings.logStreamFiles ? join(settings.dataDir, 'log-streams') : undefined,
    measures: metrics?.measures,
  });
  background.run('a look at the packages of actions', () => warnOfMissingPackages(shown));
  const resume = () =>
    background.run('removals that were noted', async () => {
      await leases.ifFree('removals', () => resumeRecordRemovals(capabilities));
    });
  resume();
  // Other processes, commands among them, may have recorded removals and ended before doing them.
  if (store.exclusive !== true) {
    const timer = setInterval(resume, RESUME_INTERVAL).unref();
    ending.addEventListener('abort', () => clearInterval(timer));
  }
  jobs.resume();
  deliveries.start();
}

/** Completes the removal of what belonged to deleted connections, APIs and applications: users, permissions, what was granted. */
async function resumeRecordRemovals({
  store,
  clock,
  removeUser,
  endUnlinked,
}: Pick<Capabilities, 'clock' | 'removeUser' | 'endUnlinked'> & { store: Store }): Promise<void> {
  const deps = { store, now: () => new Date(clock()).toISOString(), removeUser, endUnlinked };
  await Promise.all([
    resumeConnectionRemovals(deps),
    resumePermissionRemovals(store),
    resumeClientRemovals(store),
  ]);
}
