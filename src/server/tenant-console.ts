// The dependencies of the console.
import { readFile } from 'node:fs/promises';
import type { Middleware } from 'koa';
import { timerPause } from '../capabilities/delivery/queue.ts';
import type { Scripts } from '../capabilities/scripts/scripts.ts';
import { bind } from '../engine/provider/feature.ts';
import { customDatabases } from '../features/connections/database/custom.ts';
import { exampleOf } from '../features/console/administrators/example.ts';
import { CONSOLE } from '../features/console/callbacks.ts';
import { TRY_RESULT } from '../features/console/connections/shared.ts';
import { CONSOLE_PATHS, type ConsoleDependencies, consoleFeature } from '../features/console/feature.ts';
import { connectionChecks } from '../features/console/overview/connection-checks.ts';
import { showErrorInConsole } from '../features/console/page.ts';
import { consoleOrigin } from '../features/console/settings.ts';
import { usersReadAhead } from '../features/console/users/read-ahead.ts';
import { loginRouteFor } from '../features/flow/login-route.ts';
import { PROBE_PATHS } from '../features/health.ts';
import { managementApi } from '../features/management/api.ts';
import type { ManagementFeatureDependencies } from '../features/management/feature.ts';
import { createCsrf } from '../http/csrf.ts';
import type { ErrorShape } from '../http/errors.ts';
import { tenantHostOf } from '../http/request-target.ts';
import { parseRouteKey, type Route } from '../http/router.ts';
import type { Settings } from '../settings/index.ts';
import { retentionDays } from '../tenant/events.ts';
import type { Capabilities, ServedDependencies } from './capabilities.ts';
import { EVENTS } from './features.ts';
import type { TenantEngine } from './tenant-engine.ts';

/**
 * Returns the dependencies of the console, by name.
 * @param own `management`: the dependencies of the Management API; `ending`: aborted when the server begins to stop.
 */
function consoleDependencies(
  deps: ServedDependencies,
  capabilities: Capabilities,
  {
    consoleLogins,
    endings,
    factorDependencies,
    tryLogins,
    upstream,
    engine: { sessions, tokens },
  }: TenantEngine,
  { management, ending }: { management: ManagementFeatureDependencies; ending: AbortSignal },
): ConsoleDependencies {
  const { settings, store } = deps;
  return {
    ...factorDependencies,
    ...tryDependencies(deps, capabilities, upstream),
    baseUrl: settings.baseUrl,
    consoleUrl: consoleOrigin(settings),
    connectionChecks: connectionChecks({ ...deps, ...capabilities, ...capabilities.providers, ending }),
    consoleLogins,
    mailReset: ({ ip, ...about }) =>
      capabilities.requestReset({
        ...about,
        client: undefined,
        organization: undefined,
        languages: [],
        caller: { ip },
      }),
    issuer: settings.issuer,
    logCounts: capabilities.logCounts,
    administrators: deps.administrators,
    csrf: createCsrf(consoleOrigin(settings), deps.random),
    endPending: endings.endPending,
    isMailed: settings.mail !== undefined,
    management,
    meanings: EVENTS,
    paths: CONSOLE_PATHS,
    retentionDays: () => retentionDays(capabilities.config),
    readUsersAhead: usersReadAhead({ store, background: capabilities.background }),
    removeUser: endings.removeUser,
    scopes: scopesOf(settings),
    serverCertificate: () => certificateFile(settings),
    sessions,
    store,
    tokens,
    tryLogins,
    sendEmail: capabilities.sendEmail,
    sendSms: capabilities.sendSms,
    limitDestination: capabilities.limitDestination,
    templates: capabilities.templates,
    views: capabilities.views,
  };
}

/** Returns the dependencies of "Try" at a connection, which logs in there without a session. */
function tryDependencies(
  { settings, users, clock, wallClock, pause = timerPause }: ServedDependencies,
  capabilities: Capabilities,
  upstream: TenantEngine['upstream'],
) {
  const { attempts, callers, challenges, directories, events, limitLogin, rateLimits, scripts } =
    capabilities;
  const { hostname: tenant } = new URL(settings.baseUrl);
  return {
    limitLogin,
    scripts,
    packages: capabilities.packages,
    testLogins: upstream.testLogins,
    upstream,
    proofs: {
      attempts,
      callers,
      challenges,
      customDatabases: capabilities.customDatabases,
      directories,
      events,
      users,
      wallClock,
    },
    databasesBy: (by: Pick<Scripts, 'run'>) =>
      customDatabases({
        scripts: by,
        packages: capabilities.packages,
        events,
        rateLimits,
        tenant,
        clock,
        pause,
      }),
  };
}

/**
 * Returns the server's certificate, PEM. It is read each time, because a renewed file is there before the server uses
 * it.
 */
async function certificateFile({ tls }: ServedDependencies['settings']): Promise<string | undefined> {
  if (tls.mode !== 'files') return undefined;
  // A file that cannot be read is reported at the start and by the doctor.
  return readFile(tls.certFile, 'utf8').catch(() => undefined);
}

/**
 * Returns how errors are shown to browsers: a login request that is over leads to its application, within the console for administrators who are logged in there, otherwise on
 * the error page.
 */
export function errorPageOf(
  { settings, store }: ServedDependencies,
  { config, views }: Capabilities,
  { factorDependencies }: TenantEngine,
): ErrorShape {
  const page: ErrorShape = async (ctx, error) => {
    const route = await loginRouteFor({ config, issuer: settings.issuer }, ctx, error);
    if (route === undefined) return views.error(ctx, error);
    ctx.redirect(route);
    if (ctx.method !== 'GET') ctx.status = 303;
  };
  if (!settings.console) return page;
  const consolePage = {
    ...factorDependencies,
    baseUrl: settings.baseUrl,
    consoleUrl: consoleOrigin(settings),
    paths: CONSOLE_PATHS,
    scopes: scopesOf(settings),
    store,
    views,
  };
  return async (ctx, error) => {
    if (!(await showErrorInConsole(consolePage, ctx, error))) await page(ctx, error);
  };
}

/** Returns the scopes of the Management API. */
const scopesOf = ({ issuer }: Settings) => managementApi(issuer).scopes.map(({ value }) => value);

/** Returns the routes of the console; none where it is off. */
export function consoleRoutesOf(...dependencies: Parameters<typeof consoleDependencies>): Route[] {
  const [{ settings }] = dependencies;
  return settings.console ? bind(consoleFeature, consoleDependencies(...dependencies)) : [];
}

/**
 * Makes the routing by host. Where the console has a host of its own, requests there are answered by the console's
 * routes alone, and all others by the rest. Scripts on the tenant's pages then run at another origin than the console.
 * @param router makes the middleware that answers the requests of some routes.
 */
export function consoleAtItsHost(
  routes: readonly Route[],
  settings: Settings,
  router: (some: readonly Route[]) => Middleware,
): Middleware {
  const consoleUrl = consoleOrigin(settings);
  if (consoleUrl === settings.baseUrl) return router(routes);
  const consolePaths = new Set(
    Object.keys(consoleFeature.routes ?? {}).map((key) => parseRouteKey(key).path),
  );
  const isShared = ({ path }: Route) => path.startsWith('/assets/') || PROBE_PATHS.includes(path);
  const own = router(routes.filter((one) => consolePaths.has(one.path) || isShared(one)));
  const others = router(routes.filter(({ path }) => !consolePaths.has(path)));
  const { host } = new URL(consoleUrl);
  return (ctx, next) => (tenantHostOf(ctx).host === host ? own : others)(ctx, next);
}

/** Returns the address that a browser is sent to after a test of a connection. */
export function testUrl(settings: Settings): string {
  return `${consoleOrigin(settings)}${TRY_RESULT}`;
}

/**
 * Returns the login of the example's administrator and the address of the console; undefined where there is no console
 * or no such administrator.
 */
export async function exampleLogin({
  settings,
  administrators,
}: Pick<ServedDependencies, 'settings' | 'administrators'>) {
  const example = settings.console ? await exampleOf(administrators) : undefined;
  return example && { ...example, consoleUrl: `${consoleOrigin(settings)}${CONSOLE}` };
}
