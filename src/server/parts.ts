// The first step of a tenant: the capabilities that need no engine, each made once. What calls the engine later (the reading of
// a token, an exchange, a delegated login) is given the way to it.

import { totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { createActions } from '../capabilities/actions/actions.ts';
import { METHOD_LISTS } from '../capabilities/actions/commands.ts';
import { emailActions } from '../capabilities/actions/email-message.ts';
import { createExecutions } from '../capabilities/actions/executions.ts';
import { phoneActions } from '../capabilities/actions/phone-message.ts';
import { registrationActions } from '../capabilities/actions/registration.ts';
import { type ActionTest, tryAction } from '../capabilities/actions/try-action.ts';
import { createMessages } from '../capabilities/delivery/deliver.ts';
import { createDeliveries, type Pause, timerPause } from '../capabilities/delivery/deliveries.ts';
import { deliveryEvents, deliveryLimits } from '../capabilities/delivery/delivery-declaration.ts';
import { createTemplates } from '../capabilities/delivery/delivery-templates.ts';
import { limitedSms } from '../capabilities/delivery/limited-sms.ts';
import { createOutbox } from '../capabilities/delivery/outbox.ts';
import type { OutgoingEmail, OutgoingSms } from '../capabilities/delivery/transport.ts';
import { chooseTransports } from '../capabilities/delivery/transports.ts';
import { createTenantLiquid, type ReportingLiquid, reportingLiquid } from '../capabilities/liquid/liquid.ts';
import { createViews } from '../capabilities/pages/views.ts';
import type { Attempt } from '../capabilities/protection/attempt.ts';
import { createAttempts, limitLogins } from '../capabilities/protection/attempts.ts';
import { createChallenges } from '../capabilities/protection/challenges.ts';
import { createLoginTickets } from '../capabilities/protection/login-tickets.ts';
import { protectionEvents } from '../capabilities/protection/protection-declaration.ts';
import {
  createEventBudget,
  createKnownCallers,
  createRateLimits,
} from '../capabilities/protection/rate-limit.ts';
import { createXmlReader } from '../capabilities/saml-messages/reader.ts';
import { SCRIPT_LIMITS } from '../capabilities/scripts/limits.ts';
import { createPackages } from '../capabilities/scripts/packages/packages.ts';
import { createScripts } from '../capabilities/scripts/scripts.ts';
import { threadsWithin } from '../capabilities/scripts/threads.ts';
import { openHolder } from '../capabilities/signing/holder.ts';
import { createSigning } from '../capabilities/signing/signing.ts';
import { clientCertificates } from '../capabilities/tls/client-certificates.ts';
import { mtlsOrigin } from '../capabilities/tls/tls-settings.ts';
import type { Organizations } from '../engine/admission/admission.ts';
import type { CheckRequest, DirectRedirect, SilentRedirect } from '../engine/authorize/authorize.ts';
import { publishedKeys } from '../engine/base/signed-tokens.ts';
import type { CheckPossession } from '../engine/binding/proof-of-possession.ts';
import { type ServerLoginCallback, serverLoginCallbacks } from '../engine/client/server-login-callbacks.ts';
import type { Feature } from '../engine/provider/feature.ts';
import type { Engine } from '../engine/provider/provider.ts';
import { logoutTokens } from '../engine/session/logout-channels.ts';
import { oldSessionUses } from '../engine/session/old-sessions.ts';
import type { Sessions } from '../engine/session/sessions.ts';
import { administratorTokenSigner } from '../engine/token/administrator-tokens.ts';
import { apiTokenReader, callerTokenReader, managementTokenReader } from '../engine/token/api-tokens.ts';
import type { RedeemServerLoginCode } from '../engine/token/server-login-codes.ts';
import {
  actorOfIdToken,
  type ExchangeDependencies,
  subjectTokenReader,
  tokenExchange,
} from '../engine/token/token-exchange.ts';
import { accountAudience } from '../features/account/account-audience.ts';
import { accountCallbacks } from '../features/account/page/account-callbacks.ts';
import { askToVerify } from '../features/connections/database/base/verification-link.ts';
import { findInCustomDatabase } from '../features/connections/database/custom/custom-user.ts';
import { withCustomDatabases } from '../features/connections/database/custom/custom-users.ts';
import { customDatabases } from '../features/connections/database/custom/database-custom.ts';
import { resetRequests } from '../features/connections/database/mailed-links/reset-link.ts';
import { lockNotice } from '../features/connections/database/unblock.ts';
import { customExchange } from '../features/connections/exchange/exchange-custom.ts';
import { lazyDirectories } from '../features/connections/ldap/lazy.ts';
import { openIdProviders } from '../features/connections/oidc/providers.ts';
import { passwordlessLimits } from '../features/connections/passwordless/passwordless-declaration.ts';
import { providerChecks } from '../features/connections/provider-checks.ts';
import { scriptRunner } from '../features/connections/redirect.ts';
import { connectionFault, hasRealm } from '../features/connections/resolve.ts';
import { samlMetadata } from '../features/connections/samlp/metadata-fetch.ts';
import { pendingLogins } from '../features/connections/upstream/begin.ts';
import { testLogins } from '../features/connections/upstream/test-logins.ts';
import { directRedirect } from '../features/connections/upstream/upstream-feature.ts';
import { tryCallbacks, tryLogins } from '../features/console/applications/try-logins.ts';
import { consoleCallbacks } from '../features/console/console-callbacks.ts';
import { consoleOrigin } from '../features/console/console-settings.ts';
import { approvedPrograms } from '../features/console/programs/approved-programs.ts';
import { createAuthenticators, createFactorChanges } from '../features/factors/authenticators.ts';
import { mfaAudience } from '../features/factors/bearer.ts';
import { createKnownBrowsers } from '../features/factors/browsers.ts';
import { createElevation } from '../features/factors/elevation.ts';
import { FACTORS } from '../features/factors/factors.ts';
import { createSecondFactor } from '../features/factors/factors-grants.ts';
import { losesFactor } from '../features/factors/policy.ts';
import { approvingDevices } from '../features/factors/push/approvals.ts';
import { createStreams } from '../features/factors/push/streams.ts';
import { createWebPush } from '../features/factors/push/web-push.ts';
import { actionRedirects } from '../features/flow/action-redirects.ts';
import { createServerLogins } from '../features/flow/server-logins.ts';
import { approvalCallbacks } from '../features/grants/ciba/ciba-callbacks.ts';
import { deviceCallbacks } from '../features/grants/device/device-callbacks.ts';
import { backChannel } from '../features/logout/back-channel.ts';
import { SIGNED_OUT_PATH } from '../features/logout/end-session.ts';
import { managementScopes } from '../features/management/api.ts';
import { managementAudience } from '../features/management/management-audience.ts';
import type { ManagementFeatureDependencies } from '../features/management/management-feature.ts';
import { measureEvents } from '../features/metrics/logins.ts';
import type { Metrics } from '../features/metrics/registry.ts';
import { moveCounter } from '../features/move/move-counts.ts';
import { createOldDirectory } from '../features/move/old-directory.ts';
import { BOUNDS, sendToOldTenant } from '../features/move/old-requests.ts';
import { bringUserFrom } from '../features/move/old-users.ts';
import { oldPasswords } from '../features/move/passwords.ts';
import { oldRefreshTokens } from '../features/move/refresh-tokens.ts';
import { oldSessions } from '../features/move/sessions.ts';
import { identityProvider } from '../features/saml/identity-provider.ts';
import { samlCallbacks } from '../features/saml/saml-callbacks.ts';
import { createDns } from '../http/dns.ts';
import { AuthError } from '../http/errors.ts';
import type { Limit } from '../http/limits.ts';
import { createOutbound, type Outbound, outboundRules, tracedOutbound } from '../http/outbound/outbound.ts';
import { createCsrf } from '../http/server/csrf.ts';
import type { EventTypes } from '../records/base/log-events.ts';
import { MFA_POLICY } from '../records/users/authentication-classes.ts';
import { createBackground } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import { correlation } from '../runtime/requester.ts';
import type { Random } from '../runtime/secrets.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';
import type { Tracing } from '../runtime/tracing.ts';
import { VERSION } from '../runtime/version.ts';
import type { Waits } from '../runtime/waits.ts';
import {
  outboundAllow,
  packagesDirectory,
  SECRET_SETTINGS,
  type Settings,
  strangersOutboundAllow,
} from '../settings/index.ts';
import { isForThisMachine, workersOf } from '../settings/server.ts';
import type { Store } from '../store/contract.ts';
import { createLeases } from '../store/leases.ts';
import {
  type Config,
  type FullConfig,
  openConfig,
  type TenantConfig,
  withBuiltIns,
} from '../tenant/config.ts';
import { createEvents, type Events, keepRetention, retentionDays } from '../tenant/events.ts';
import { createLogCounts } from '../tenant/log-counts.ts';
import { type Administrators, type AllUsers, withAdministrators } from '../users/administrators.ts';
import { withIdentifierNotices } from '../users/identifier-notices.ts';
import type { LinkedUsers } from '../users/linking.ts';
import { withRegistration } from '../users/registration.ts';
import type { TenantUsers } from '../users/users.ts';

const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));

/** Everything that a tenant is built from. There is no other state. */
export interface TenantDependencies {
  settings: Settings;
  store: Store;
  users: TenantUsers;
  administrators: Administrators;
  log: Logger;
  /** A monotonic clock, for durations: expiry, limits, timeouts. */
  clock: Clock;
  /** The time of day, which may be set back. For dates that others have set or compare with their own clocks. */
  wallClock: Clock;
  random: Random;
  /** Waits between two attempts to send a message. Tests pass their own. */
  pause?: Pause;
  /** How long a request waits for the outcome of its message, milliseconds. */
  maxWait?: number;
  waits?: Waits;
  /** The idle threads that scripts may use, and that they are returned to at the stop. */
  spareThreads?: SpareThreads | undefined;
  /** Undefined where metrics are off. */
  metrics?: Metrics | undefined;
  tracing?: Tracing | undefined;
}

export interface Declared {
  features: readonly Feature[];
  builtIns: readonly NonNullable<Feature['builtIns']>[];
  routeLimits: ReadonlySet<Limit>;
  eventTypes: EventTypes;
  /** The parameters that authorization requests may have of our own. */
  endpointParameters: ReadonlySet<string>;
}

/** The authentication context classes (`acr`) that clients may request. */
const ACR_VALUES = [MFA_POLICY];

/**
 * @param ending aborted when the server begins to stop.
 * @param engine returns the engine; called by requests only, which come when it is made.
 * @throws Error when the store holds no tenant.
 */
export async function createParts(
  deps: TenantDependencies,
  declared: Declared,
  { ending, engine }: { ending: AbortSignal; engine: () => Engine },
) {
  const given = givenParts(deps, declared, ending);
  const ground = { ...given, ...(await groundParts(deps, declared, given)) };
  const code = { ...ground, ...tenantCode(deps, ground) };
  const people = { ...code, users: withAdministrators(code.tenantUsers, deps.administrators) };
  const sending = { ...people, ...sendingParts(deps, people) };
  const protecting = { ...sending, ...protectingParts(deps, sending) };
  const factors = { ...protecting, ...factorParts(protecting) };
  const tokens = { ...factors, ...tokenParts(factors, engine) };
  return { ...tokens, ...loginParts(tokens, engine) };
}

export type Parts = Awaited<ReturnType<typeof createParts>>;

/** Returns what the tenant is given, by the names that features know it by. */
function givenParts(
  { settings, store, administrators, log, clock, wallClock, random, metrics }: TenantDependencies,
  { features, eventTypes, endpointParameters }: Declared,
  ending: AbortSignal,
) {
  const { baseUrl, issuer } = settings;
  return {
    store,
    administrators,
    log,
    /** The store's clock, which never goes back. */
    clock,
    wallClock,
    random,
    metrics,
    ending,
    baseUrl,
    issuer,
    /** The public URL of the console: `baseUrl`, or an origin of its own. */
    consoleUrl: consoleOrigin(settings),
    hasConsole: settings.console,
    isForThisMachine: isForThisMachine(settings),
    mtlsOrigin: mtlsOrigin(settings),
    metricsSettings: settings.metrics,
    version: VERSION,
    features,
    eventTypes,
    endpointParameters,
    acrValues: ACR_VALUES,
    signedOutPage: `${baseUrl}${SIGNED_OUT_PATH}`,
  };
}

type Given = ReturnType<typeof givenParts>;

/** Makes the configuration, the log, limits, and what asks other servers. */
async function groundParts(deps: TenantDependencies, declared: Declared, given: Given) {
  const { store, clock, random, log, ending } = given;
  const { settings, metrics } = deps;
  const configs = configsOf(await openConfig(store), declared, given);
  const { config } = configs;
  const background = createBackground(log);
  // Ids of events must sort by time, whichever process recorded them: statistics and log streams continue after an id.
  const eventClock = store.sharedClock ?? clock;
  const events = createEvents({
    store,
    clock: eventClock,
    random,
    log,
    budget: createEventBudget(clock),
    measure: metrics && measureEvents(metrics.measures, config),
    transaction: correlation.id,
    retentionDays: () => retentionDays(config),
  });
  keepRetention({ ...deps, config, events, background, ending });
  const outboundTo = (allowed: readonly string[]) =>
    tracedOutbound(createOutbound({ rules: outboundRules(allowed) }), deps.tracing);
  const outbound = outboundTo(outboundAllow(settings));
  return {
    ...configs,
    background,
    correlation,
    events,
    /** Hourly statistics of the log. */
    logCounts: createLogCounts({ ...deps, clock: eventClock, background, ending }),
    challenges: createChallenges({ store, clock, random }),
    rateLimits: createRateLimits({
      store,
      config,
      clock,
      measures: metrics?.measures,
      routeLimits: declared.routeLimits,
    }),
    leases: createLeases({ store, clock, random }),
    callers: createKnownCallers(store, clock),
    outbound,
    /** For addresses that anybody can name. */
    strangersOutbound: outboundTo(strangersOutboundAllow(settings)),
    fetch: outbound.fetch,
    dns: createDns(settings.dnsServers),
    directories: lazyDirectories({ outbound, clock }),
    xml: createXmlReader(),
    deliveries: createDeliveries({ ...deps, ending }),
    ...signingParts(deps, { config, outbound }),
  };
}

type Ground = Given & Awaited<ReturnType<typeof groundParts>>;

function configsOf(
  declaredConfig: TenantConfig,
  { builtIns }: Declared,
  { mtlsOrigin: origin, ...given }: Given,
): { declaredConfig: TenantConfig; tenantConfig: TenantConfig; config: FullConfig } {
  const { settings } = declaredConfig;
  const all = builtIns.flatMap((one) => one({ ...given, settings }) ?? []);
  const tenantConfig = withBuiltIns(
    withOrigin(declaredConfig, origin),
    all.filter(({ isOfConsole }) => isOfConsole !== true),
  );
  return {
    /** Only what the tenant declares. */
    declaredConfig,
    /** For what may show nothing of the console. */
    tenantConfig,
    config: {
      ...withBuiltIns(
        tenantConfig,
        all.filter(({ isOfConsole }) => isOfConsole),
      ),
      whose: 'all',
    },
  };
}

/** Adds the origin at which clients show certificates (mutual TLS) to the custom domains. */
function withOrigin(config: TenantConfig, origin: string | undefined): TenantConfig {
  return origin === undefined
    ? config
    : { ...config, customOrigins: () => [...config.customOrigins(), origin] };
}

/** Makes the signing of tokens, and the client of the service that holds the keys where they are not in the store. */
function signingParts(
  { settings, store, log, clock, wallClock, waits }: TenantDependencies,
  { config, outbound }: { config: Config; outbound: Outbound },
) {
  const keyHolder = openHolder(settings.signing, {
    outbound,
    log,
    clock,
    timeout: waits?.signature,
    hidden: SECRET_SETTINGS,
  });
  const commonName = new URL(settings.baseUrl).hostname;
  return {
    keyHolder,
    signing: createSigning({ store, config, clock: wallClock, commonName, holder: keyHolder }),
  };
}

/**
 * Makes what runs the tenant's own code: scripts, actions, custom databases. The `tenantUsers` run it for every new user and
 * password, so features must be given these.
 */
function tenantCode(
  {
    settings,
    store,
    users,
    clock,
    wallClock,
    random,
    pause = timerPause,
    waits,
    spareThreads,
  }: TenantDependencies,
  ground: Ground,
) {
  const { background, config, deliveries, events, leases, outbound, rateLimits } = ground;
  const scripts = createScripts({
    outbound,
    clock: wallClock,
    keepsLog: isForThisMachine(settings),
    prepared: METHOD_LISTS,
    waitMs: waits?.scriptThread,
    threads: threadsWithin(availableMemory() / (workersOf(settings) ?? 1), SCRIPT_LIMITS),
    spareThreads,
    ...(waits?.scriptCpu !== undefined && { limits: { ...SCRIPT_LIMITS, cpuMs: waits.scriptCpu } }),
  });
  const { hostname } = new URL(settings.baseUrl);
  const packages = createPackages({ directory: packagesDirectory(settings), scripts });
  const oldTenant = oldTenantParts({ ...ground, pause, timeout: waits?.oldTenant });
  const days = () => retentionDays(config);
  const executions = createExecutions({ store, background, clock, random, retentionDays: days });
  const actions = createActions({ config, scripts, packages, executions, events, wallClock, hostname });
  const databases = customDatabases({
    scripts,
    packages,
    events,
    rateLimits,
    tenant: hostname,
    oldTenant: oldTenant.oldTenant,
    clock,
    pause,
  });
  const noticed = withIdentifierNotices(users, events);
  const withDatabases = withCustomDatabases(noticed, { config, customDatabases: databases, leases, random });
  return {
    scripts,
    packages,
    tryAction: (trying: ActionTest) => tryAction({ scripts, packages, wallClock, hostname }, trying),
    customDatabases: databases,
    ...oldTenant,
    actions,
    tenantUsers: withRegistration(
      withDatabases,
      registrationActions({ actions, config, deliveries, events, store, users, wallClock }),
    ),
  };
}

/** Makes what asks the tenant that this one takes the place of. */
function oldTenantParts(parts: Ground & { pause: Pause; timeout: number | undefined }) {
  const { fetch } = parts.outbound;
  const sender = (bridge: keyof typeof BOUNDS) =>
    sendToOldTenant({ ...parts, fetch, bounds: BOUNDS[bridge] });
  const send = sender('passwords');
  const directory = createOldDirectory({ ...parts, send });
  const countMove = moveCounter(parts);
  const openId = openIdProviders({ fetch, clock: parts.clock });
  return {
    countMove,
    oldTenantSends: { sessions: sender('sessions'), refresh_tokens: sender('refresh_tokens') },
    oldDirectory: directory,
    oldTenant: oldPasswords({ ...parts, send, directory, countMove, openId }),
  };
}

/** Returns the memory of the machine, or of the container if that is less, in bytes. */
function availableMemory(): number {
  const allowed = process.constrainedMemory();
  // 0 where the system knows of no such limit.
  return allowed > 0 ? Math.min(allowed, totalmem()) : totalmem();
}

type TenantCode = ReturnType<typeof tenantCode>;

/** Makes the renderer of the tenant's own templates. The log tells of those that fail. */
const tenantTemplates = (log: Logger, events: Pick<Events, 'record'>): ReportingLiquid =>
  reportingLiquid(createTenantLiquid(), ({ name, fault }) => {
    log.warn({ template: name, fault }, 'a template failed: ours is used');
    events.record({
      type: deliveryEvents.template_failed,
      description: `${name}: ${fault}`,
      details: { template: name },
    });
  });

/** Makes the pages, and everything that sends: e-mail, SMS, and the queue of deliveries that features use for the rest. */
function sendingParts(deps: TenantDependencies, parts: Ground & TenantCode & { users: AllUsers }) {
  const { settings, clock, wallClock, random } = deps;
  const { config, deliveries, outbound, rateLimits } = parts;
  const liquid = tenantTemplates(parts.log, parts.events);
  const views = createViews({
    directory: VIEWS,
    random,
    settings: config.settings,
    look: config.look,
    liquid,
  });
  const outbox = createOutbox({ directory: join(settings.dataDir, 'outbox'), clock, random });
  const { mailFrom, hasSmsProvider, isMailCustom, ...transports } = chooseTransports(settings, {
    config,
    outbound,
    outbox,
    wallClock,
  });
  const delivering = { actions: parts.actions, wallClock };
  const email = emailActions(delivering, transports.email, isMailCustom);
  const sms = limitedSms(phoneActions(delivering, transports.sms, hasSmsProvider), {
    take: (number) => rateLimits.spend(deliveryLimits.smsDestination, number),
    giveBack: (number) => rateLimits.giveBack(deliveryLimits.smsDestination, number),
  });
  const templates = createTemplates({
    directory: VIEWS,
    locales: views.locales,
    baseUrl: settings.baseUrl,
    settings: config.settings,
    phoneTemplates: config.phoneTemplates,
    mailFrom,
    liquid: views.liquid,
  });
  const { measures } = deps.metrics ?? {};
  const messages = createMessages({
    ...deps,
    ...parts,
    users: parts.tenantUsers,
    revoke: parts.challenges.revoke,
    email,
    sms,
    deliveries,
    templates,
    measures,
  });
  return {
    views,
    liquid: views.liquid,
    outbox,
    messages,
    templates,
    /** Sends an e-mail at once and does not retry, for a caller who waits for the outcome. */
    sendEmail: (message: OutgoingEmail) => email.deliver(message, random(16).toString('hex')),
    /** Sends an SMS at once and does not retry; through the tenant's action for phone messages where it has one. */
    sendSms: (message: OutgoingSms) => sms.deliver(message, random(16).toString('hex')),
  };
}

type SendingParts = ReturnType<typeof sendingParts>;

/** Makes what counts failed attempts, locks accounts, and lets their owners in again. */
function protectingParts(deps: TenantDependencies, parts: Ground & TenantCode & SendingParts) {
  const {
    baseUrl,
    store,
    clock,
    wallClock,
    random,
    config,
    events,
    challenges,
    callers,
    rateLimits,
    outbound,
  } = parts;
  const onLocked = lockNotice({ ...parts, users: deps.users });
  return {
    attempts: createAttempts({
      store,
      config,
      callers,
      clock,
      onLocked,
      onThrottled: recordThrottling(events),
    }),
    limitLogin: limitLogins(rateLimits),
    tickets: createLoginTickets(challenges, random),
    requestReset: resetRequests({ ...parts, users: parts.tenantUsers }),
    csrf: createCsrf(baseUrl, random),
    certificates: clientCertificates(wallClock),
    providers: providerChecks({ ...parts, ...outbound }),
  };
}

function recordThrottling(events: Events) {
  return ({ connection, identifier, ip }: Attempt) =>
    events.record({
      type: protectionEvents.limit_mu,
      ip,
      // An attempt that belongs to no account has neither.
      ...(connection !== '' && { connection, user_name: identifier }),
    });
}

/** Makes the second factors of a tenant: what they store, how they send, and what asks for one at a login. */
function factorParts(
  parts: Ground & TenantCode & SendingParts & ReturnType<typeof protectingParts> & { users: AllUsers },
) {
  const { store, users, clock, wallClock, random, config, deliveries, outbound, log, rateLimits, issuer } =
    parts;
  const factorChanges = createFactorChanges({ store, clock, random });
  const authenticators = createAuthenticators({ store, factorChanges, clock, random });
  const own = {
    factors: FACTORS,
    factorChanges,
    authenticators,
    elevation: createElevation({ users, factorChanges }),
    webPush: createWebPush({
      allowLoopback: parts.isForThisMachine,
      authenticators,
      clock: wallClock,
      config,
      deliveries,
      log,
      outbound,
      store,
    }),
    browsers: createKnownBrowsers({ store, clock, random }),
    streams: createStreams(),
    /** Counts a message to a destination. @throws AuthError 429 when there were too many. */
    limitDestination: async (destination: string): Promise<void> => {
      if (await rateLimits.spend(passwordlessLimits.passwordlessDestination, destination)) return;
      throw new AuthError(429, 'too_many_requests', 'Too many messages to this address. Try again later.');
    },
  };
  const deps = { ...parts, ...own };
  const mfaApi = mfaAudience(issuer);
  return {
    ...own,
    mfaApi,
    secondFactor: createSecondFactor(deps, [mfaApi, accountAudience(issuer), managementAudience(issuer)]),
    /** Whether the link of two users would take the protection of a second factor away. */
    losesFactor: (linked: LinkedUsers) => losesFactor(deps, linked),
    devicesOf: approvingDevices(deps),
  };
}

type FactorParts = Ground &
  TenantCode &
  SendingParts &
  ReturnType<typeof protectingParts> & { users: AllUsers } & ReturnType<typeof factorParts>;

type AskForVerification = ManagementFeatureDependencies['askToVerify'];

/** Makes what reads, exchanges and revokes tokens, and the logins at other identity providers. */
function tokenParts(parts: FactorParts, engine: () => Engine) {
  const { baseUrl, issuer, clock, wallClock, random, config, challenges, signing, scripts } = parts;
  const { outbound, xml, tenantUsers, tenantConfig } = parts;
  const { fetch } = outbound;
  const isOpen: Sessions['isOpen'] = (sid) => engine().sessions.isOpen(sid);
  const grantOf: Sessions['grantOf'] = (id) => engine().sessions.grantOf(id);
  const tokenReading = {
    ...parts,
    keys: publishedKeys(config, { issuer, clock: wallClock }),
    clock: wallClock,
    isOpen,
    grantOf,
    checkPossession: ((...args) => engine().checkPossession(...args)) as CheckPossession,
    readIdTokenSubject: ((token) =>
      engine().readIdTokenSubject(token)) as ExchangeDependencies['readIdTokenSubject'],
    isMember: ((...args) => engine().organizations.isMember(...args)) as ExchangeDependencies['isMember'],
  };
  /** Sends the verification e-mail for a new address, if the tenant sends one. */
  const askForVerification: AskForVerification = async (user, connection, clientId, ip) => {
    const client = clientId === undefined ? undefined : await tenantConfig.client(clientId);
    await askToVerify({ ...parts, baseUrl }, { user, connection, client, languages: [], ip });
  };
  const exchanging = { ...tokenReading, enrolledFactors: parts.secondFactor.enrolledFactors };
  const signLogoutToken = logoutTokens({ issuer, signing, clock: wallClock, random });
  return {
    isOpen,
    askToVerify: askForVerification,
    readApiToken: apiTokenReader(tokenReading),
    readCallerToken: callerTokenReader(tokenReading),
    readManagementToken: managementTokenReader(tokenReading),
    administratorTokens: approvedPrograms({
      ...parts,
      scopes: managementScopes(issuer),
      sign: administratorTokenSigner({ issuer, signing, wallClock }),
    }),
    exchangeToken: tokenExchange(exchanging),
    exchangeCustomToken: customExchange({
      ...parts,
      users: tenantUsers,
      enrolledFactors: exchanging.enrolledFactors,
      actorOfIdToken: (token) => actorOfIdToken({ ...tokenReading, users: tenantUsers }, token),
      askToVerify: askForVerification,
    }),
    readSubjectToken: subjectTokenReader(exchanging),
    backChannel: backChannel({ ...parts, signLogoutToken }),
    idp: identityProvider(baseUrl, config, signing.sign),
    pendingLogins: pendingLogins({ challenges, clock, random }),
    testLogins: testLogins({ challenges, random }),
    runScript: scriptRunner(scripts),
    sign: signing.sign,
    openId: openIdProviders({ fetch, clock }),
    samlMetadata: samlMetadata({ fetch, clock, xml }),
  };
}

/** Makes the bridges to the tenant that this one takes the place of. */
function moveParts(
  parts: FactorParts & ReturnType<typeof tokenParts>,
  { console: ofConsole, tried }: Record<'console' | 'tried', ServerLoginCallback>,
  engine: () => Engine,
) {
  const { store, clock } = parts;
  const { customDatabases: databases, tenantUsers: users } = parts;
  const bringUser = bringUserFrom({
    ...parts,
    findInCustomDatabase: (asked) => findInCustomDatabase({ customDatabases: databases, users }, asked),
  });
  const isMember: Organizations['isMember'] = (...args) => engine().organizations.isMember(...args);
  const sessions = oldSessions(parts);
  const redirectToProvider = directRedirect(parts);
  /** Administrators, and what they try at the console, are none of the old tenant's. */
  const isOfConsole = (callback: unknown) => [ofConsole, tried].some((one) => one.has(String(callback)));
  return {
    bringUser,
    useOldSession: oldSessionUses({ store, clock }),
    oldRefreshTokens: oldRefreshTokens({ ...parts, bringUser, isMember }),
    oldSessions: sessions,
    directRedirect: (async (ctx, request) =>
      (isOfConsole(request.params.redirect_uri) ? undefined : await sessions.redirect(ctx, request)) ??
      redirectToProvider(ctx, request)) as DirectRedirect,
    silentRedirect: (async (ctx, request) =>
      isOfConsole(request.params.redirect_uri)
        ? undefined
        : sessions.silentRedirect(ctx, request)) as SilentRedirect,
  };
}

/** Makes the logins that the server requests of its own engine (for SAML, devices, the account page, the console). */
function loginParts(parts: FactorParts & ReturnType<typeof tokenParts>, engine: () => Engine) {
  const { baseUrl, consoleUrl, config, challenges, clock, random } = parts;
  const deps = {
    ...parts,
    redeemServerLoginCode: ((value, expected) =>
      engine().redeemServerLoginCode(value, expected)) as RedeemServerLoginCode,
  };
  const kinds = {
    saml: samlCallbacks(baseUrl),
    device: deviceCallbacks(baseUrl),
    approval: approvalCallbacks(baseUrl),
    account: accountCallbacks(baseUrl),
    console: consoleCallbacks(consoleUrl),
    tried: tryCallbacks(consoleUrl),
  };
  const logins = {
    samlLogins: createServerLogins({ ...deps, purpose: 'internal_login', callbacks: kinds.saml }),
    deviceLogins: createServerLogins({ ...deps, purpose: 'device_login', callbacks: kinds.device }),
    approvalLogins: createServerLogins({ ...deps, purpose: 'approval_login', callbacks: kinds.approval }),
    accountLogins: createServerLogins({ ...deps, purpose: 'account_login', callbacks: kinds.account }),
    consoleLogins: createServerLogins({ ...deps, purpose: 'console_login', callbacks: kinds.console }),
    tryLogins: tryLogins({ ...deps, callbacks: kinds.tried }),
  };
  const checkRequest: CheckRequest = async (query) => {
    for (const one of Object.values(logins)) await one.check(query);
  };
  return {
    ...logins,
    checkRequest,
    serverLoginCallbacks: serverLoginCallbacks(Object.values(kinds)),
    connectionFault: (clientId: string, name: string) => connectionFault(config, clientId, name),
    hasRealm: (clientId: string, realm: string) => hasRealm(config, clientId, realm),
    ...moveParts(parts, kinds, engine),
    actionRedirects: actionRedirects({ challenges, clock, random }),
  };
}
