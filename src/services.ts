// What a tenant's features are given: built once, each from what it needs, nothing reached for.
import { join } from 'node:path';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { database } from './connections/database/feature.ts';
import type { LimitLogin } from './connections/database/login.ts';
import { lockNotice } from './connections/database/unblock.ts';
import { passwordless } from './connections/passwordless/feature.ts';
import { connectionFault, describeConnections, hasRealm } from './connections/resolve.ts';
import { createMessages } from './delivery/deliver.ts';
import { createOutbox } from './delivery/outbox.ts';
import { type Pause, timerPause } from './delivery/queue.ts';
import { createTemplates } from './delivery/templates.ts';
import { chooseTransports } from './delivery/transports.ts';
import { withTryLogin } from './development/try-login.ts';
import { apiTokenReader } from './engine/api-tokens.ts';
import { bindEngineParts } from './engine/feature.ts';
import { createLogoutChannels } from './engine/logout-channels.ts';
import { logoutTokens } from './engine/logout-token.ts';
import { createEngine, type Engine } from './engine/provider.ts';
import { publishedKeys } from './engine/published-keys.ts';
import { withMfaApi } from './factors/api.ts';
import { createAuthenticators } from './factors/authenticators.ts';
import { mfaAudience } from './factors/bearer.ts';
import { createKnownBrowsers } from './factors/browsers.ts';
import { createElevation } from './factors/elevation.ts';
import { createFactorChanges } from './factors/factor-changes.ts';
import { FACTORS } from './factors/factors.ts';
import { mfa as factors } from './factors/feature.ts';
import { MFA_POLICY } from './factors/policy.ts';
import { createStreams } from './factors/push/streams.ts';
import { createWebPush } from './factors/push/web-push.ts';
import { createSecondFactor } from './factors/second-factor.ts';
import { EVENTS, LIMITS, ROUTE_LIMITS } from './features.ts';
import { delegatedLogins } from './flow/delegated-login.ts';
import { createFinish } from './flow/finish.ts';
import { createCsrf } from './http/csrf.ts';
import { AuthError } from './http/errors.ts';
import { createBackChannel } from './logout/back-channel.ts';
import { logout } from './logout/feature.ts';
import { createViews } from './pages/views.ts';
import { createAttempts } from './protection/attempts.ts';
import { createKnownCallers } from './protection/callers.ts';
import { createChallenges } from './protection/challenges.ts';
import { createEventBudget } from './protection/event-budget.ts';
import { createLoginTickets } from './protection/login-tickets.ts';
import { createRateLimits } from './protection/rate-limit.ts';
import { createBackground } from './runtime/background.ts';
import type { Clock } from './runtime/clock.ts';
import type { Random } from './runtime/random.ts';
import { samlCallbacks } from './saml/callbacks.ts';
import { saml } from './saml/feature.ts';
import { identityProvider } from './saml/identity-provider.ts';
import { isForThisMachine, type Settings } from './settings.ts';
import type { Store } from './store/contract.ts';
import { openConfig } from './tenant/config.ts';
import { createEvents } from './tenant/events.ts';
import type { Users } from './users/users.ts';

/** What a tenant is built from; nothing else is reached for. */
export interface TenantDependencies {
  settings: Settings;
  store: Store;
  users: Users;
  log: Logger;
  /** Never goes back: for how long something lasts. */
  clock: Clock;
  /** For what others have dated, or compare with their own clocks. */
  wallClock: Clock;
  random: Random;
  /** How the pauses between tries of a message are waited for. */
  pause?: Pause;
}

/**
 * Builds them.
 * @param viewsDirectory the `views` directory.
 * @throws Error when the store holds no tenant.
 */
export async function createServices(deps: TenantDependencies, viewsDirectory: string) {
  const base = await createBase(deps, viewsDirectory);
  const { settings, store, clock, log, users } = deps;
  const { config, views, challenges, attempts, callers, events, rateLimits } = base;
  const { wallClock } = deps;
  const proofs = { config, users, challenges, attempts, callers, events, wallClock };
  const limitLogin: LimitLogin = (ctx, connection, identifier) =>
    rateLimits.takeFrom(ctx, 'login', `${connection.name}\n${identifier.trim().toLowerCase()}`);
  const mfa = await createMfa(deps, base);
  const mfaApi = mfaAudience(settings.issuer);
  const { issuer } = settings;
  const keys = publishedKeys(config);
  const readApiToken = apiTokenReader({ issuer, keys, clock: wallClock });
  const allowLoopback = isForThisMachine(settings);
  const backChannel = createBackChannel({
    config,
    events,
    log,
    signLogoutToken: logoutTokens({ issuer, config, clock: wallClock, random: deps.random }),
    allowLoopback,
    pause: deps.pause,
  });
  const idp = identityProvider(settings.baseUrl, config);
  const firstFactors = [
    bindEngineParts(database, { ...proofs, limitLogin }),
    bindEngineParts(passwordless, proofs),
  ];
  const parts = [
    ...firstFactors,
    bindEngineParts(factors, { ...mfa, mfaApi, readApiToken }),
    bindEngineParts(logout, { config, backChannel }),
    bindEngineParts(saml, { store, config, idp, clock, random: deps.random }),
  ];
  const credentialGrants = firstFactors.flatMap(({ grants }) => grants);
  const callbacks = samlCallbacks(settings.baseUrl);
  const logins = delegatedLogins({
    ...base,
    callbacks,
    redeemOwnCode: (value, expected) => engine.redeemOwnCode(value, expected),
  });
  const engine: Engine = await createEngine({
    settings,
    store,
    config,
    users,
    clock,
    wallClock: deps.wallClock,
    random: deps.random,
    log,
    challenges,
    events,
    tickets: base.tickets,
    grants: parts.flatMap(({ grants }) => grants),
    secondFactor: createSecondFactor(mfa, mfaApi),
    acrValues: [MFA_POLICY],
    errorPage: (ctx, error) => views.error(ctx, error),
    connectionFault: (clientId, name) => connectionFault(config, clientId, name),
    logoutChannels: createLogoutChannels(
      parts.flatMap((part) => part.logoutChannels),
      log,
    ),
    ownCallbacks: callbacks,
    checkRequest: logins.check,
  });
  const { sessions } = engine;
  return {
    ...base,
    ...mfa,
    engine,
    /** Those of a first factor: what is given to them may be given for a login ticket, too. */
    credentialGrants,
    limitLogin,
    hasRealm: (clientId: string, realm: string) => hasRealm(config, clientId, realm),
    describeConnections: (clientId: string) => describeConnections(config, clientId),
    interactions: engine.interactions,
    finish: createFinish({ ...engine, wallClock: deps.wallClock }),
    authenticateClient: (ctx: Context) => engine.authenticateClient(ctx),
    readApiToken,
    idp,
    readIdTokenHint: engine.readIdTokenHint,
    /** Whether what we call or frame may be on this machine, without TLS. */
    allowLoopback,
    backChannel,
    delegatedLogins: logins,
    issuer: settings.issuer,
    /** Aborted when the server is about to end. */
    ending: new AbortController(),
    sessions,
    ...endings(deps.store, sessions, mfa),
    removeUser: (userId: string) => removeUser(deps.store, sessions, mfa, userId),
  };
}

export type Services = Awaited<ReturnType<typeof createServices>>;

/** What ends for a user whose password is set anew. */
function endings(store: Store, sessions: Engine['sessions'], mfa: Awaited<ReturnType<typeof createMfa>>) {
  const { authenticators, browsers } = mfa;
  const endSessions = async (userId: string): Promise<void> => {
    await sessions.endAllOf(userId, { reason: 'password-changed', refreshTokens: true });
  };
  return {
    endPending: async (userId: string): Promise<void> => {
      await Promise.all([authenticators.removeAllBegunOf(userId), browsers.forgetAllOf(userId)]);
    },
    endSessions,
    endAll: async (userId: string): Promise<void> => {
      await Promise.all([
        endSessions(userId),
        authenticators.removeAllOf(userId),
        store.collection('consents').deleteBy('user', userId),
      ]);
    },
  };
}

/** Removes a user with all that is theirs; the log keeps what happened. */
async function removeUser(
  store: Store,
  sessions: Engine['sessions'],
  { users, challenges, callers, authenticators, browsers }: Awaited<ReturnType<typeof createMfa>>,
  userId: string,
): Promise<void> {
  // The user first: whatever a login under way stores after that, it finds nobody to whom it belongs.
  await users.remove(userId);
  await Promise.all([
    challenges.revokeAllOf(userId),
    callers.forgetAllOf(userId),
    authenticators.removeAllOf(userId),
    browsers.forgetAllOf(userId),
    store.collection('consents').deleteBy('user', userId),
    sessions.endAllOf(userId, { reason: 'account-deleted', refreshTokens: true }),
  ]);
}

/** Of what is in `services`, everything that needs no engine and no second factor. */
async function createBase(deps: TenantDependencies, viewsDirectory: string) {
  const { settings, store, users, log, clock, random, pause = timerPause } = deps;
  const { baseUrl } = settings;
  const tenantConfig = await openConfig(store);
  const withApi = withMfaApi(tenantConfig, settings.issuer);
  const config = isForThisMachine(settings) ? withTryLogin(withApi, baseUrl) : withApi;
  const events = createEvents({
    store,
    clock,
    random,
    log,
    budget: createEventBudget(clock),
    types: new Set(Object.keys(EVENTS)),
  });
  const challenges = createChallenges({ store, clock, random });
  const rateLimits = createRateLimits({ store, config, clock, limits: LIMITS, ofRoutes: ROUTE_LIMITS });
  const background = createBackground(log);
  const outbox = createOutbox({ directory: join(settings.dataDir, 'outbox'), clock, random });
  const { mailFrom, ...transports } = chooseTransports(settings, config, outbox);
  const templates = createTemplates({
    directory: viewsDirectory,
    baseUrl,
    settings: config.settings,
    mailFrom,
    log,
  });
  const messages = createMessages({ templates, ...transports, events, log, clock, pause });
  const callers = createKnownCallers(store, clock);
  const notices = { baseUrl, config, users, challenges, messages, background, events, rateLimits };
  const attempts = createAttempts({
    store,
    config,
    callers,
    clock,
    onLocked: lockNotice(notices),
    onThrottled: ({ connection, identifier, ip }) =>
      events.record({ type: 'limit_mu', connection, user_name: identifier, ip }),
  });
  return {
    baseUrl,
    store,
    /** The tenant file's own, without what is ours. */
    tenantConfig,
    config,
    users,
    events,
    challenges,
    tickets: createLoginTickets(challenges, random),
    rateLimits,
    background,
    outbox,
    messages,
    callers,
    attempts,
    views: createViews({ directory: viewsDirectory, random, settings: config.settings }),
    csrf: createCsrf(baseUrl, random),
    clock,
    wallClock: deps.wallClock,
    random,
    log,
  };
}

type Base = Awaited<ReturnType<typeof createBase>>;

/** What the second factor needs beside. */
async function createMfa({ settings, store, clock, wallClock, random }: TenantDependencies, base: Base) {
  const factorChanges = createFactorChanges({ store, clock, random });
  const authenticators = createAuthenticators({ store, factorChanges, clock, random });
  return {
    ...base,
    factors: FACTORS,
    authenticators,
    elevation: createElevation({ users: base.users, factorChanges }),
    webPush: createWebPush({
      ...base,
      clock: wallClock,
      authenticators,
      allowLoopback: isForThisMachine(settings),
    }),
    browsers: createKnownBrowsers({ store, clock, random }),
    streams: createStreams(),
    /** @throws AuthError 429 */
    limitDestination: async (destination: string) => {
      if (await base.rateLimits.spend('passwordlessDestination', destination)) return;
      throw new AuthError(429, 'too_many_requests', 'Too many messages to this address. Try again later.');
    },
  };
}
