// The whole HTTP surface of one tenant: the middleware order, and what is mounted where.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { bodyParser } from '@koa/bodyparser';
import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import type { Logger } from 'pino';
import { accountPages } from './database/account-pages.ts';
import { databaseRoutes } from './database/routes.ts';
import { developmentRoutes } from './development/routes.ts';
import type { Engine } from './engine/provider.ts';
import { anyOrigin, applicationOrigins } from './http/cors.ts';
import { errorsAs, oauthShape, toAuthError } from './http/errors.ts';
import { securityHeaders } from './http/headers.ts';
import { behindProxy } from './http/proxy.ts';
import type { Clock, Random } from './http/runtime.ts';
import type { Views } from './http/views.ts';
import { crossOriginRoutes } from './login/cross-origin.ts';
import { loginRoutes } from './login/routes.ts';
import { unblockRoutes } from './login/unblock.ts';
import { logoutRoutes } from './logout/routes.ts';
import { deviceRoutes } from './mfa/device-routes.ts';
import { mfaPages } from './mfa/pages.ts';
import { mfaRoutes } from './mfa/routes.ts';
import { passwordlessPages } from './passwordless/hosted.ts';
import { passwordlessRoutes } from './passwordless/routes.ts';
import type { RateLimits } from './protection/rate-limit.ts';
import { samlParty } from './saml/logout-run.ts';
import { identityProvider } from './saml/provider.ts';
import { samlRoutes } from './saml/routes.ts';
import { createServices, type TenantDependencies } from './services.ts';
import { hasDevelopmentPages } from './settings.ts';
import type { Store } from './store/contract.ts';
import { isApplicationOrigin } from './tenant/directory.ts';

export interface Tenant {
  app: Koa;
  /** Ends what would keep connections busy for long: the server is about to end. */
  drain(): void;
  /** Waits for background work; the store is the caller's to close. */
  close(): Promise<void>;
}

const { version: VERSION } = createRequire(import.meta.url)('../package.json') as { version: string };

const VIEWS = fileURLToPath(new URL('../views', import.meta.url));

/** Bodies of the endpoints are small; the engine itself takes at most 56 KiB. */
const LARGEST_BODY = '56kb';

/** How long messages that wait may take when the server stops, milliseconds. */
const LAST_MESSAGES = 3_000;

/** What browser applications call from their own origin. */
const CROSS_ORIGIN =
  /^\/(oauth\/(token|revoke)|userinfo|dbconnections\/|passwordless\/(start|verify)$|co\/authenticate|mfa\/|authenticator\/)/;
const PUBLIC = /^\/\.well-known\//;

/** What the engine alone answers. */
const OAUTH = /^\/oauth\//;

/**
 * Builds the server of the tenant whose file was applied to the store.
 * @throws Error when the store holds no tenant.
 */
export async function createTenant(deps: TenantDependencies): Promise<Tenant> {
  const { settings, store, log, clock, random } = deps;
  const services = await createServices(deps, VIEWS);
  const { engine, directory, views, limits, csrf, outbox, background, messages, events } = services;
  const runEngine = inOrder(engine.middleware);

  const app = new Koa();
  app.on('error', (error) => log.warn({ err: error }, 'a response could not be sent'));
  app.use(securityHeaders({ hsts: new URL(settings.baseUrl).hostname !== 'localhost' }));
  app.use(health(store, log));
  if (settings.tls.mode === 'proxy') app.use(behindProxy(settings.tls.trustedProxies));
  app.use(requestLog(log, clock, random));
  app.use(views.assets.serve);
  app.use(pathIs(PUBLIC, anyOrigin()));
  app.use(
    pathIs(
      CROSS_ORIGIN,
      applicationOrigins((origin) => isApplicationOrigin(directory, origin)),
    ),
  );
  app.use(pathIs(CROSS_ORIGIN, errorsAs(oauthShape, log)));
  app.use(pathIs(PUBLIC, errorsAs(oauthShape, log)));
  app.use(errorPages(views, log));
  app.use(limits.byPath);
  app.use(bodyParser({ jsonLimit: LARGEST_BODY, formLimit: LARGEST_BODY, encoding: 'utf-8' }));
  // The busiest paths first: none of the routers below has them.
  app.use(pathIs(OAUTH, runEngine));
  app.use(endpoints(engine, limits));
  app.use(databaseRoutes(services));
  app.use(accountPages(services));
  app.use(
    passwordlessRoutes({
      ...services,
      tokenEndpoint: async (ctx, fields) => {
        ctx.request.body = fields;
        ctx.path = '/oauth/token';
        await runEngine(ctx, async () => {});
      },
    }),
  );
  app.use(mfaRoutes(services));
  app.use(deviceRoutes({ ...services, ending: services.ending.signal }));
  app.use(unblockRoutes(services));
  app.use(logoutRoutes(services));
  app.use(passwordlessPages(services));
  app.use(crossOriginRoutes(services));
  app.use(mfaPages(services));
  app.use(loginRoutes(services));
  const saml = { ...services, idp: identityProvider(settings.baseUrl, directory, engine.signingKeys) };
  services.participants.join(samlParty(saml));
  app.use(samlRoutes(saml));
  if (hasDevelopmentPages(settings))
    app.use(
      developmentRoutes({
        baseUrl: settings.baseUrl,
        version: VERSION,
        directory: services.tenantDirectory,
        outbox,
        views,
        csrf,
      }),
    );
  app.use(runEngine);
  return {
    app,
    drain: () => services.ending.abort(),
    close: async () => {
      await background.flush();
      await Promise.all([messages.flush(LAST_MESSAGES), services.backChannel.flush(LAST_MESSAGES)]);
      await events.flush();
    },
  };
}

/** Endpoints of the engine's that the engine itself does not serve. */
function endpoints({ userinfo, keySet }: Engine, limits: RateLimits): Middleware {
  const router = new Router();
  router.get('/.well-known/jwks.json', (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=15, stale-while-revalidate=15');
    ctx.body = keySet;
  });
  router.register(
    '/userinfo',
    ['get', 'post'],
    [userinfo.authenticate, limits.limit('userinfo', (ctx) => userinfo.holder(ctx)), userinfo.respond],
  );
  return router.routes() as Middleware;
}

/** `/healthz`: the process answers. `/readyz`: the store does, too. */
function health(store: Store, log: Logger): Middleware {
  return async (ctx, next) => {
    if (ctx.path === '/healthz') {
      ctx.body = { status: 'ok' };
    } else if (ctx.path === '/readyz') {
      const fault = await store.ready().then(
        () => undefined,
        (error: unknown) => error,
      );
      if (fault !== undefined) log.error({ err: fault }, 'the store is not ready');
      ctx.status = fault === undefined ? 200 : 503;
      ctx.body = { status: fault === undefined ? 'ok' : 'unavailable' };
    } else {
      await next();
    }
  };
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

/** Several middleware as one. */
function inOrder(all: readonly Middleware[]): Middleware {
  return (ctx, next) => {
    const run = (index: number): Promise<unknown> => {
      const middleware = all[index];
      return middleware === undefined ? next() : middleware(ctx, () => run(index + 1));
    };
    return run(0);
  };
}

function pathIs(pattern: RegExp, middleware: Middleware): Middleware {
  return (ctx, next) => (pattern.test(ctx.path) ? middleware(ctx, next) : next());
}

/** What goes wrong on a browser's way is shown as a page. */
function errorPages(views: Views, log: Logger): Middleware {
  return async (ctx, next) => {
    if (CROSS_ORIGIN.test(ctx.path) || PUBLIC.test(ctx.path)) return next();
    try {
      await next();
    } catch (thrown) {
      await views.error(ctx, toAuthError(thrown, log.child({ requestId: ctx.state.requestId })));
    }
  };
}
