// The whole HTTP surface of one tenant: what every request passes, and the routes of all features.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import Koa, { type Middleware } from 'koa';
import type { Logger } from 'pino';
import { database } from './connections/database/feature.ts';
import { loginPages } from './connections/login-page.ts';
import { passwordless } from './connections/passwordless/feature.ts';
import { development } from './development/feature.ts';
import { bind } from './engine/feature.ts';
import { engine as engineFeature } from './engine/routes.ts';
import { mfa } from './factors/feature.ts';
import { authenticator } from './factors/push/feature.ts';
import { FEATURES, LIMITS } from './features.ts';
import { flow } from './flow/feature.ts';
import { createShowNext } from './flow/routes.ts';
import { health, PROBES } from './health.ts';
import { readBody } from './http/body.ts';
import { securityHeaders } from './http/headers.ts';
import { behindProxy } from './http/proxy.ts';
import { requestTarget } from './http/request-target.ts';
import { createRouter, type Route } from './http/routes.ts';
import { closeUnread } from './http/unread.ts';
import { SIGNED_OUT } from './logout/end-session.ts';
import { logout } from './logout/feature.ts';
import type { LimitName } from './records/limits.ts';
import type { Clock } from './runtime/clock.ts';
import type { Deadline } from './runtime/deadline.ts';
import type { Random } from './runtime/random.ts';
import { saml } from './saml/feature.ts';
import { createServices, type Services, type TenantDependencies } from './services.ts';
import { isForThisMachine } from './settings.ts';
import { finishWork } from './stop.ts';

export interface Tenant {
  app: Koa;
  /** Every request that is answered. */
  routes: readonly Route[];
  /** Ends what would keep connections busy for long: the server is about to end. */
  drain(): void;
  /** Waits for background work, by the deadline at the latest; the store is the caller's to close. */
  close(deadline?: Deadline): Promise<void>;
}

const { version: VERSION } = createRequire(import.meta.url)('../package.json') as { version: string };

const VIEWS = fileURLToPath(new URL('../views', import.meta.url));

/** Bodies of the endpoints are small; the engine itself takes at most 56 KiB. Bytes. */
const LARGEST_BODY = 56 * 1024;

/** Requests that are worked on at once: more than wait for passwords to be hashed, which take longest. */
const MOST_AT_ONCE = 1_000;

/**
 * Builds the server of the tenant whose file was applied to the store.
 * @throws Error when the store holds no tenant.
 */
export async function createTenant(deps: TenantDependencies): Promise<Tenant> {
  const { settings, log, clock, random } = deps;
  const services = await createServices(deps, VIEWS);
  const { config, views, rateLimits } = services;
  const routes = routesOf(deps, services);

  const app = new Koa();
  app.on('error', (error) => log.warn({ err: error }, 'a response could not be sent'));
  app.use(securityHeaders({ hsts: new URL(settings.baseUrl).hostname !== 'localhost' }));
  app.use(closeUnread(LARGEST_BODY));
  app.use(requestTarget());
  if (settings.tls.mode === 'proxy') {
    app.use(behindProxy(settings.tls.trustedProxies, PROBES));
  }
  app.use(requestLog(log, clock, random));
  // What was changed before a request came is in force for it.
  app.use(async (_ctx, next) => {
    await config.refresh();
    await next();
  });
  app.use(
    createRouter(routes, {
      log,
      isApplicationOrigin: config.isApplicationOrigin,
      errorPage: (ctx, error) => views.error(ctx, error),
      isLimit: (name) => Object.hasOwn(LIMITS, name),
      // The router has asked at start whether it is one.
      takeLimit: (ctx, name) => rateLimits.takeFrom(ctx, name as LimitName),
      readBody: readBody(LARGEST_BODY),
      mostAtOnce: MOST_AT_ONCE,
    }),
  );
  return {
    app,
    routes,
    drain: () => services.ending.abort(),
    close: (deadline) => finishWork(services, deadline),
  };
}

/** The routes of all features. */
function routesOf({ settings, store, log }: TenantDependencies, services: Services): Route[] {
  const { engine, rateLimits, views, csrf, outbox } = services;
  const samlDeps = {
    ...services,
    signedOutPage: `${settings.baseUrl}${SIGNED_OUT}`,
  };
  const flowDeps = { ...services, loginPageOf: loginPages(services) };
  return [
    ...bind(health, { store, log }),
    ...views.assets.routes,
    ...bind(engineFeature, { ...engine, rateLimits }),
    ...bind(flow, flowDeps),
    ...bind(database, { ...services, showNext: createShowNext(flowDeps) }),
    ...bind(passwordless, {
      ...services,
      tokenEndpoint: engine.tokens.token,
      pseudonymKey: services.random(32),
    }),
    ...bind(mfa, services),
    ...bind(authenticator, { ...services, ending: services.ending.signal }),
    ...bind(logout, services),
    ...bind(saml, samlDeps),
    ...(!isForThisMachine(settings)
      ? []
      : bind(development, {
          baseUrl: settings.baseUrl,
          version: VERSION,
          features: FEATURES,
          limits: LIMITS,
          config: services.tenantConfig,
          outbox,
          views,
          csrf,
        })),
  ];
}

/**
 * A line per request, with the id that its error page shows. The query is left out, where codes and tokens
 * may be.
 */
function requestLog(log: Logger, clock: Clock, random: Random): Middleware {
  // Unique without asking for randomness at each request.
  const run = random(6).toString('base64url');
  let count = 0;
  return async (ctx, next) => {
    const started = clock();
    const requestId = `${run}-${(++count).toString(36)}`;
    ctx.state.requestId = requestId;
    await next();
    if (!log.isLevelEnabled('debug')) return;
    log.debug(
      {
        requestId,
        method: ctx.method,
        path: ctx.path,
        status: ctx.status,
        ms: clock() - started,
        ip: ctx.ip,
      },
      'request',
    );
  };
}
