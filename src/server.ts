// The whole HTTP surface of one tenant: what every request passes, and the routes of all features.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import Koa from 'koa';
import { accountEndings } from './account-endings.ts';
import { type Capabilities, createCapabilities, type TenantDependencies } from './capabilities.ts';
import { database } from './connections/database/feature.ts';
import { issueTicketLink } from './connections/database/ticket-link.ts';
import { askToVerify } from './connections/database/verification-link.ts';
import { firstProof } from './connections/first-proof.ts';
import { loginPages } from './connections/login-page.ts';
import { passwordless } from './connections/passwordless/feature.ts';
import { describeConnections, hasRealm } from './connections/resolve.ts';
import { development } from './development/feature.ts';
import { consentAudience } from './engine/consents.ts';
import { bind } from './engine/feature.ts';
import { makeSigningKey, rotateSigningKeys } from './engine/keys.ts';
import { refreshTokenDirectory } from './engine/refresh-directory.ts';
import { engine as engineFeature } from './engine/routes.ts';
import { sessionDirectory } from './engine/session-directory.ts';
import { mfa } from './factors/feature.ts';
import { authenticator } from './factors/push/feature.ts';
import { renewRecoveryCode } from './factors/recovery/codes.ts';
import { FEATURES, LIMITS } from './features.ts';
import { flow } from './flow/feature.ts';
import { createShowNext } from './flow/routes.ts';
import { health, PROBES } from './health.ts';
import { readBody } from './http/body.ts';
import { securityHeaders } from './http/headers.ts';
import { behindProxy } from './http/proxy.ts';
import { requestLog } from './http/request-log.ts';
import { requestTarget } from './http/request-target.ts';
import { createRouter } from './http/router.ts';
import type { Route } from './http/routes.ts';
import { closeUnread } from './http/unread.ts';
import { SIGNED_OUT } from './logout/end-session.ts';
import { logout } from './logout/feature.ts';
import { managementApi, managementAudience } from './management/api.ts';
import { resumeRemovals } from './management/connection-removal.ts';
import { management, managementArea } from './management/feature.ts';
import { exportLink } from './management/jobs/links.ts';
import { createUserJobs } from './management/jobs/user-jobs.ts';
import { managementOpenApi } from './management/openapi.ts';
import { createLocks } from './protection/locks.ts';
import type { LimitName } from './records/limits.ts';
import type { Deadline } from './runtime/deadline.ts';
import { saml } from './saml/feature.ts';
import { isForThisMachine } from './settings.ts';
import { finishWork } from './stop.ts';
import { createTenantEngine, factorDependencies, type TenantEngine } from './tenant-engine.ts';

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
  const capabilities = await createCapabilities(deps, VIEWS);
  const tenantEngine = await createTenantEngine(deps, capabilities);
  const { config, views, rateLimits, background, messages, events } = capabilities;
  const { backChannel } = tenantEngine;
  /** Aborted when the server is about to end. */
  const ending = new AbortController();
  const routes = routesOf(deps, capabilities, tenantEngine, ending.signal);

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
      readBody: ({ largest = LARGEST_BODY, texts }) => readBody(largest, texts),
      areas: [managementArea],
      mostAtOnce: MOST_AT_ONCE,
    }),
  );
  return {
    app,
    routes,
    drain: () => ending.abort(),
    close: (deadline) => finishWork({ background, messages, backChannel, events, log }, deadline),
  };
}

/** The routes of all features, each given what it needs by name. Long, because it is the one list of all dependencies. */
function routesOf(
  deps: TenantDependencies,
  capabilities: Capabilities,
  tenantEngine: TenantEngine,
  ending: AbortSignal,
) {
  const { settings, store, users, log, clock, wallClock, random } = deps;
  const { baseUrl, issuer } = settings;
  const { tenantConfig, config, events, challenges, rateLimits, limitLogin, background, callers, attempts } =
    capabilities;
  const { outbox, messages, tickets, views, csrf, authenticators, webPush, browsers, streams } = capabilities;
  const { engine, finish, credentialGrants, readApiToken, readCallerToken, idp, delegatedLogins } =
    tenantEngine;
  const { interactions, organizations, sessions, authenticateClient, readIdTokenHint, tokens } = engine;
  const allowLoopback = isForThisMachine(settings);
  const endings = accountEndings({ store, users, sessions, challenges, callers, authenticators, browsers });
  const { endAll, endGone, endPending, endSessions, removeUser } = endings;
  const now = () => new Date(wallClock()).toISOString();
  background.run('the removal of connections', () => resumeRemovals({ store, background, now, removeUser }));
  const jobs = createUserJobs({ store, background, clock, random, log, ending, endSessions });
  jobs.resume();
  const loginPageOf = loginPages({ config, csrf, finish, interactions, views });
  const pages = {
    baseUrl,
    config,
    csrf,
    finish,
    interactions,
    loginPageOf,
    organizations,
    random,
    tickets,
    users,
    views,
  };
  return [
    ...bind(health, { store, log }),
    ...views.assets.routes,
    ...bind(engineFeature, {
      enter: engine.enter,
      authorization: engine.authorization,
      tokens,
      userinfo: engine.userinfo,
      keys: engine.keys,
      rateLimits,
    }),
    ...bind(flow, {
      ...pages,
      credentialGrants,
      describeConnections: (clientId, organization) => describeConnections(config, clientId, organization),
      events,
      hasRealm: (clientId, realm) => hasRealm(config, clientId, realm),
      rateLimits,
    }),
    ...bind(database, {
      attempts,
      background,
      baseUrl,
      callers,
      challenges,
      config,
      csrf,
      endAll,
      endPending,
      endSessions,
      events,
      finish,
      interactions,
      limitLogin,
      rateLimits,
      log,
      messages,
      random,
      removeUser,
      showNext: createShowNext(pages),
      tickets,
      users,
      views,
      wallClock,
    }),
    ...bind(passwordless, {
      attempts,
      authenticateClient,
      baseUrl,
      callers,
      challenges,
      config,
      csrf,
      events,
      finish,
      interactions,
      rateLimits,
      messages,
      pseudonymKey: random(32),
      random,
      tickets,
      tokenEndpoint: tokens.token,
      users,
      views,
      wallClock,
    }),
    ...bind(mfa, {
      ...factorDependencies(deps, capabilities),
      authenticateClient,
      csrf,
      finish,
      interactions,
      issuer,
      log,
      readApiToken,
      views,
    }),
    ...bind(authenticator, {
      authenticators,
      baseUrl,
      challenges,
      config,
      ending,
      events,
      rateLimits,
      log,
      streams,
      users,
      views,
      wallClock,
      webPush,
    }),
    ...bind(logout, {
      allowLoopback,
      baseUrl,
      challenges,
      config,
      csrf,
      events,
      issuer,
      readIdTokenHint,
      sessions,
      users,
      views,
    }),
    ...bind(saml, {
      baseUrl,
      challenges,
      clock,
      config,
      delegatedLogins,
      events,
      idp,
      random,
      sessions,
      signedOutPage: `${baseUrl}${SIGNED_OUT}`,
      store,
      users,
      views,
      wallClock,
    }),
    ...bind(management, {
      baseUrl,
      issueTicket: (kind, ticket) => issueTicketLink({ baseUrl, challenges, random }, kind, ticket),
      jobs,
      linkTo: (job) => exportLink({ clock, baseUrl }, job),
      askToVerify: async (user, connection, clientId, ip) => {
        const client = clientId === undefined ? undefined : await config.client(clientId);
        await askToVerify({ baseUrl, challenges, messages }, { user, connection, client, languages: [], ip });
      },
      audience: managementAudience(issuer),
      authenticators,
      background,
      clock,
      audienceOf: (key) => consentAudience(issuer, key),
      config,
      endGone,
      endSessions: async (userId, reason) => {
        await sessions.endAllOf(userId, { reason, refreshTokens: true });
      },
      endUnlinked: async (userId) => {
        await sessions.endAllOf(userId, { reason: 'session-revoked', refreshTokens: true });
      },
      events,
      makeSigningKey: (alg) => makeSigningKey(wallClock, new URL(baseUrl).hostname, alg),
      messages,
      forgetBrowsers: (userId) => browsers.forgetAllOf(userId),
      locks: createLocks({ store, config, clock }),
      hasClient: async (clientId) => (await config.client(clientId)) !== undefined,
      now,
      random,
      readIdTokenHint,
      readToken: readCallerToken,
      refreshTokens: refreshTokenDirectory({ store, config }),
      removeUser,
      removeUserByEmail: async (connection, email) => {
        const user = await users.findInConnection(connection, email);
        if (user !== undefined) await removeUser(user.id);
      },
      renewRecoveryCode: (userId) => renewRecoveryCode({ authenticators, random }, userId),
      revokeKey: async (kid) => {
        await store.collection('signingKeys').delete(kid);
      },
      rotateKeys: () => rotateSigningKeys(store, wallClock, new URL(baseUrl).hostname),
      sessionDirectory: sessionDirectory({
        store,
        config,
        clock,
        wallClock,
        sessions,
        firstProof: (connection) => firstProof(config, connection),
      }),
      scopesOf: async (audience) => (await config.resourceServer(audience))?.scopes.map(({ value }) => value),
      store,
      systemApis: () => [managementApi(issuer)],
      tenantName: new URL(baseUrl).hostname,
      users,
      wallClock,
    }),
    ...(isForThisMachine(settings)
      ? bind(development, {
          baseUrl,
          version: VERSION,
          features: FEATURES,
          limits: LIMITS,
          managementOpenApi: () => managementOpenApi(baseUrl),
          config: tenantConfig,
          outbox,
          views,
          csrf,
        })
      : []),
  ];
}
