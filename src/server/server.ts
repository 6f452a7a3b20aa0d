// The whole HTTP surface of one tenant: what every request passes, and the routes of all features.
import type Koa from 'koa';
import { mtlsOrigin } from '../capabilities/tls/settings.ts';
import { trustedBy, trustedHeaders } from '../capabilities/tls/trusted-headers.ts';
import { waitForEarlyProofs } from '../engine/binding/early-proofs.ts';
import { bind } from '../engine/provider/feature.ts';
import { engine as engineFeature } from '../engine/provider/routes.ts';
import { account } from '../features/account/feature.ts';
import { accountPage } from '../features/account/page/feature.ts';
import { database } from '../features/connections/database/feature.ts';
import { identifier } from '../features/connections/identifier/feature.ts';
import { linking } from '../features/connections/linking/feature.ts';
import { loginPages } from '../features/connections/login-page.ts';
import { logoutAtProvider } from '../features/connections/logout.ts';
import { passkeys } from '../features/connections/passkeys/feature.ts';
import { passwordless } from '../features/connections/passwordless/feature.ts';
import { describeConnections } from '../features/connections/resolve.ts';
import { revocation } from '../features/connections/revocation/feature.ts';
import { samlUpstream } from '../features/connections/samlp/feature.ts';
import { upstream } from '../features/connections/upstream/feature.ts';
import { consoleOrigin } from '../features/console/settings.ts';
import { development } from '../features/development/feature.ts';
import { mfa } from '../features/factors/feature.ts';
import { authenticator } from '../features/factors/push/feature.ts';
import { flow } from '../features/flow/feature.ts';
import { createShowNext } from '../features/flow/routes.ts';
import { anonymous } from '../features/grants/anonymous/feature.ts';
import { ciba } from '../features/grants/ciba/feature.ts';
import { device } from '../features/grants/device/feature.ts';
import { health, PROBE_PATHS } from '../features/health.ts';
import { SIGNED_OUT_PATH } from '../features/logout/end-session.ts';
import { logout } from '../features/logout/feature.ts';
import { management } from '../features/management/feature.ts';
import { managementOpenApi } from '../features/management/openapi.ts';
import { metricsRoutes } from '../features/metrics/serve.ts';
import { saml } from '../features/saml/feature.ts';
import { originOf } from '../http/addresses.ts';
import { createApplication, securityHeaders } from '../http/application.ts';
import { watchRequests } from '../http/request-log.ts';
import { tenantHost } from '../http/request-target.ts';
import type { Route } from '../http/router.ts';
import { closeUnread } from '../http/turns.ts';
import type { Deadline } from '../runtime/deadline.ts';
import { askedBy } from '../runtime/requester.ts';
import { VERSION } from '../runtime/version.ts';
import { isForThisMachine } from '../settings/server.ts';
import type { Events } from '../tenant/events.ts';
import {
  type Capabilities,
  createCapabilities,
  type ServedDependencies,
  type TenantDependencies,
} from './capabilities.ts';
import { LIMITS, servedFeatures } from './features.ts';
import { finishWork } from './stop.ts';
import { accountDependencies } from './tenant-account.ts';
import { consoleRoutesOf, exampleLogin, testUrl } from './tenant-console.ts';
import { createTenantEngine, type TenantEngine } from './tenant-engine.ts';
import { managementOf, resumeRecordRemovals } from './tenant-management.ts';
import { MAX_BODY_BYTES, routing } from './tenant-routing.ts';

export interface Tenant {
  app: Koa;
  routes: readonly Route[];
  /** Ends the sessions and refresh tokens of a user who was blocked. */
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

/**
 * Builds the server of the tenant in the store.
 * @throws Error when the store holds no tenant.
 */
export async function createTenant(dependencies: TenantDependencies): Promise<Tenant> {
  const { settings, log } = dependencies;
  const ending = new AbortController();
  const capabilities = await createCapabilities({ ...dependencies, ending: ending.signal });
  const deps: ServedDependencies = { ...dependencies, users: capabilities.users };
  const tenantEngine = await createTenantEngine(deps, capabilities);
  const { config, background, deliveries, events, correlation } = capabilities;
  const threads = [capabilities.scripts, capabilities.views.liquid, capabilities.xml];
  const { endings, engine } = tenantEngine;
  const routes = routesOf(deps, capabilities, tenantEngine, { ending: ending.signal, endings });
  deliveries.start();
  const app = createApplication(log);
  app.use(securityHeaders({ hsts: new URL(settings.baseUrl).hostname !== 'localhost' }));
  app.use(closeUnread(MAX_BODY_BYTES));
  for (const one of trustedHeaders({ ...capabilities, tls: settings.tls, probes: PROBE_PATHS })) app.use(one);
  for (const middleware of watchRequests(deps, trustedBy(settings.tls))) app.use(middleware);
  app.use((ctx, next) => correlation.run(ctx.state.requestId, next));
  app.use((ctx, next) => askedBy(() => originOf(ctx.ip), next));
  for (const middleware of [waitForEarlyProofs(deps), engine.reuseAfterLimit]) app.use(middleware);
  // A change of the configuration is in force for every request that arrives after it.
  app.use((_ctx, next) => config.refresh()?.then(next) ?? next());
  const { baseUrl } = settings;
  app.use(tenantHost({ baseUrl, consoleUrl: consoleOrigin(settings), customOrigins: config.customOrigins }));
  app.use(routing(routes, deps, capabilities, tenantEngine));
  const completeRemovals = () => resumeRecordRemovals(deps, endings);
  return {
    app,
    routes,
    endBlocked: endings.endBlocked,
    events,
    checkConnections: capabilities.providers.checkAll,
    completeRemovals,
    resumeRemovals: () => background.run('removals that were noted', completeRemovals),
    drain: () => ending.abort(),
    close: async (deadline) => {
      await finishWork({ ...capabilities, log }, deadline);
      const closing = [...threads, capabilities.directories].map((one) => one.close());
      await Promise.all([...closing, engine.storeUsedProofs()]);
    },
    isHeldUp: () => threads.some((one) => one.isHeldUp()),
  };
}

/** Returns the routes of all features, each given its dependencies by name. */
function routesOf(
  deps: ServedDependencies,
  capabilities: Capabilities,
  tenantEngine: TenantEngine,
  { ending, endings }: { ending: AbortSignal; endings: TenantEngine['endings'] },
) {
  const { settings, store, users, log, clock, wallClock, random } = deps;
  const { baseUrl, issuer } = settings;
  const { declaredConfig, config, events, challenges, rateLimits, limitLogin, callers } = capabilities;
  const { attempts, outbox, messages, tickets, views, csrf, signing, streams } = capabilities;
  const { actionRedirects, engine, finish, secondFactor, credentialGrants, readApiToken, idp } = tenantEngine;
  const { delegatedLogins, deviceLogins, factorDependencies } = tenantEngine;
  const { interactions, organizations, sessions, authenticateClient, tokens } = engine;
  const { readIdTokenHint, clientOfForgottenToken } = engine;
  const page = { actionRedirects, baseUrl, config, csrf, finish, interactions, secondFactor, views };
  const managementDependencies = managementOf(deps, capabilities, tenantEngine, { ...endings, ending });
  const signedOutPage = `${baseUrl}${SIGNED_OUT_PATH}`;
  const atProviders = { ...tenantEngine.upstream, ...page, challenges, events, log };
  const pages = {
    ...atProviders,
    loginPageOf: loginPages(atProviders),
    organizations,
    random,
    tickets,
    users,
  };
  const accountFeatures = { ...accountDependencies(deps, capabilities, tenantEngine), ...endings };
  const firstFactor = {
    ...page,
    attempts,
    callers,
    challenges,
    customDatabases: capabilities.customDatabases,
    directories: capabilities.directories,
    events,
    messages,
    random,
    rateLimits,
    tickets,
    users,
    wallClock,
  };
  return [
    ...bind(health, { store, log }),
    ...views.assets.routes,
    ...bind(engineFeature, {
      ...engine,
      mtlsOrigin: mtlsOrigin(settings),
      endpoints: { mfa_challenge_endpoint: `${settings.baseUrl}/mfa/challenge` },
      config,
      rateLimits,
      signing,
    }),
    ...bind(flow, {
      ...pages,
      credentialGrants,
      describeConnections: (clientId, organization) => describeConnections(config, clientId, organization),
      hasRealm: tenantEngine.approving.hasRealm,
      rateLimits,
    }),
    ...bind(database, {
      ...firstFactor,
      actions: capabilities.actions,
      requestReset: capabilities.requestReset,
      ...endings,
      limitLogin,
      log,
      organizations,
      showNext: createShowNext(pages),
      store,
    }),
    ...bind(passwordless, {
      ...firstFactor,
      authenticateClient,
      store,
      refuse: engine.authorization.refuse,
      tokenEndpoint: tokens.token,
    }),
    ...bind(passkeys, { ...firstFactor, authenticateClient, showNext: createShowNext(pages), store }),
    ...bind(linking, { ...page, events, users }),
    ...bind(accountPage, { ...page, ...accountFeatures }),
    ...bind(identifier, { ...atProviders, issuer, showNext: createShowNext(pages) }),
    ...bind(upstream, { ...atProviders, sessions, tickets, testUrl: testUrl(settings), users }),
    ...bind(revocation, { ...atProviders, sessions, users }),
    ...bind(samlUpstream, { ...atProviders, challenges, sessions, signedOutPage, users }),
    ...bind(mfa, { ...page, ...factorDependencies, authenticateClient, issuer, log, readApiToken }),
    ...bind(account, { ...accountFeatures, issuer, readApiToken }),
    ...bind(anonymous, { ...firstFactor, authenticateClient, issuer, keys: engine.keys, signing }),
    ...bind(device, { ...firstFactor, authenticateClient, clock, deviceLogins }),
    ...bind(ciba, { ...firstFactor, ...tenantEngine.approving, authenticateClient, issuer, sessions }),
    ...bind(authenticator, { ...factorDependencies, ending, log, streams, views }),
    ...bind(logout, {
      logoutAtProvider: (session, back) => logoutAtProvider({ ...atProviders, users }, session, back),
      allowLoopback: isForThisMachine(settings),
      baseUrl,
      challenges,
      config,
      csrf,
      events,
      issuer,
      readIdTokenHint,
      clientOfForgottenToken,
      sessions,
      users,
      views,
    }),
    ...bind(saml, {
      baseUrl,
      challenges,
      clock,
      config,
      customClaims: engine.customClaims,
      delegatedLogins,
      events,
      idp,
      random,
      sessions,
      signedOutPage,
      store,
      users,
      views,
      wallClock,
    }),
    ...bind(management, managementDependencies),
    ...consoleRoutesOf(deps, capabilities, tenantEngine, { management: managementDependencies, ending }),
    ...metricsRoutes(deps.metrics, settings.metrics),
    ...(isForThisMachine(settings)
      ? bind(development, {
          baseUrl,
          version: VERSION,
          features: servedFeatures(settings.metrics),
          limits: LIMITS,
          managementOpenApi: () => managementOpenApi(baseUrl),
          config: declaredConfig,
          exampleAdministrator: () => exampleLogin(deps),
          outbox,
          scripts: capabilities.scripts,
          views,
          csrf,
        })
      : []),
  ];
}
