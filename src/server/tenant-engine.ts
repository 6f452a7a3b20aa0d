// The engine of a tenant, with the grants, logout channels and second factor that the features contribute.

import type { SecondFactor } from '../engine/admission/second-factor.ts';
import { publishedKeys } from '../engine/base/published-keys.ts';
import { bindEngineParts } from '../engine/provider/feature.ts';
import { createEngine, type Engine } from '../engine/provider/provider.ts';
import { createLogoutChannels, type LogoutChannel } from '../engine/session/logout-channels.ts';
import { logoutTokens } from '../engine/session/logout-token.ts';
import { type ApiTokenReader, apiTokenReader, callerTokenReader } from '../engine/token/api-tokens.ts';
import type { ExchangeDependencies } from '../engine/token/token-exchange.ts';
import { accountEndings } from '../features/account/account-endings.ts';
import { accountAudience } from '../features/account/audience.ts';
import { database } from '../features/connections/database/feature.ts';
import { linkAfterLogin } from '../features/connections/linking/after-login.ts';
import { openIdProviders } from '../features/connections/oidc/providers.ts';
import { offerAfterLogin } from '../features/connections/passkeys/enrollment.ts';
import { passkeys } from '../features/connections/passkeys/feature.ts';
import { passwordless } from '../features/connections/passwordless/feature.ts';
import { connectionFault, hasRealm } from '../features/connections/resolve.ts';
import { scriptRunner } from '../features/connections/run-script.ts';
import { samlMetadata } from '../features/connections/samlp/metadata-fetch.ts';
import { directRedirect } from '../features/connections/upstream/direct-redirect.ts';
import { upstream as upstreamLogins } from '../features/connections/upstream/feature.ts';
import { pendingLogins } from '../features/connections/upstream/pending.ts';
import { testLogins } from '../features/connections/upstream/test-logins.ts';
import { consoleOrigin } from '../features/console/settings.ts';
import { mfaAudience } from '../features/factors/bearer.ts';
import type { FactorDependencies } from '../features/factors/factor.ts';
import { mfa } from '../features/factors/feature.ts';
import { losesFactor } from '../features/factors/policy.ts';
import { approvingDevices } from '../features/factors/push/approvals.ts';
import { createSecondFactor } from '../features/factors/second-factor.ts';
import { actionRedirects } from '../features/flow/action-redirects.ts';
import { createFinish } from '../features/flow/finish.ts';
import { ciba } from '../features/grants/ciba/feature.ts';
import { device } from '../features/grants/device/feature.ts';
import { backChannel } from '../features/logout/back-channel.ts';
import { logout } from '../features/logout/feature.ts';
import { managementAudience } from '../features/management/audience.ts';
import { saml } from '../features/saml/feature.ts';
import { type IdentityProvider, identityProvider } from '../features/saml/identity-provider.ts';
import { MFA_POLICY } from '../records/authentication-classes.ts';
import type { Capabilities, ServedDependencies } from './capabilities.ts';
import { OWN_PARAMETERS } from './features.ts';
import { ownLogins } from './own-logins.ts';
import { tokenExchanges } from './tenant-exchanges.ts';
import { factorDependencies } from './tenant-factors.ts';

/** Builds the engine. @throws Error when an application cannot be served. */
export async function createTenantEngine(deps: ServedDependencies, capabilities: Capabilities) {
  const { settings, log, clock, wallClock, random } = deps;
  const { certificates, config, events, challenges, signing, tickets, views } = capabilities;
  const { issuer, baseUrl } = settings;
  const { checkPossession, redeemOwnCode, ...engineCalls } = engineFunctions(() => engine);
  const keys = publishedKeys(config);
  const tokenReading = { ...deps, ...engineCalls, config, issuer, keys, clock: wallClock, checkPossession };
  const readApiToken = apiTokenReader(tokenReading);
  const signLogoutToken = logoutTokens({ issuer, signing, clock: wallClock, random });
  const backChannelLogout = backChannel({ ...capabilities, store: deps.store, log, signLogoutToken });
  const idp = identityProvider(baseUrl, config, signing.sign);
  const { factors, mfaApi, secondFactor } = factorParts(deps, capabilities);
  const upstream = upstreamDependencies(deps, capabilities);
  const exchanges = tokenExchanges(deps, capabilities, { ...tokenReading, ...secondFactor });
  const own = { factors, mfaApi, readApiToken, backChannelLogout, idp, exchanges, upstream, ...engineCalls };
  const { firstFactors, parts } = engineParts(deps, capabilities, own);
  const { logins, ...loginParts } = ownLogins(
    { baseUrl, consoleUrl: consoleOrigin(settings) },
    { ...deps, challenges, redeemOwnCode },
  );
  const channels = parts.flatMap(({ logoutChannels }) => logoutChannels);
  const engine: Engine = await createEngine({
    ...deps,
    measures: deps.metrics?.measures,
    config,
    challenges,
    events,
    correlation: capabilities.correlation,
    tickets,
    signing,
    grants: parts.flatMap(({ grants }) => grants),
    secondFactor,
    ...REQUESTS,
    certificates,
    actions: capabilities.actions,
    errorPage: (ctx, error) => views.error(ctx, error),
    connectionFault: (clientId, name) => connectionFault(config, clientId, name),
    logoutChannels: createLogoutChannels(channels, log),
    ...loginParts,
    directRedirect: directRedirect(upstream),
  });
  return {
    engine,
    actionRedirects: actionRedirects({ challenges, clock, random }),
    ...loginEnds(deps, capabilities, { ...engine, factors, secondFactor }),
    /** Grants by a first factor. `/co/authenticate` takes the same credentials for a login ticket. */
    credentialGrants: firstFactors.flatMap(({ grants }) => grants),
    readApiToken,
    readCallerToken: callerTokenReader(tokenReading),
    idp,
    factorDependencies: factors,
    ...logins,
    approving: { ...approving(capabilities), ...logins, acrValues: ACR_VALUES, store: deps.store, clock },
    upstream,
  };
}

/** Returns the dependencies of second factors, and what asks for a second factor at a login. */
function factorParts(deps: ServedDependencies, capabilities: Capabilities) {
  const { issuer } = deps.settings;
  const factors = factorDependencies(deps, capabilities);
  const mfaApi = mfaAudience(issuer);
  const secondFactor = createSecondFactor(factors, [
    mfaApi,
    accountAudience(issuer),
    managementAudience(issuer),
  ]);
  return { factors, mfaApi, secondFactor };
}

/** The authentication context classes (`acr`) that clients may request. */
const ACR_VALUES = [MFA_POLICY];

/** What the features declare of authorization requests. */
const REQUESTS = { acrValues: ACR_VALUES, ownParameters: OWN_PARAMETERS };

/**
 * Returns the functions of the engine that features need. They reach it when they are called, because the engine is
 * made after the features.
 */
function engineFunctions(
  engine: () => Engine,
): Pick<ExchangeDependencies, 'readIdTokenSubject' | 'isMember' | 'isOpen'> &
  Pick<Engine, 'checkPossession' | 'redeemOwnCode'> {
  return {
    checkPossession: (...args) => engine().checkPossession(...args),
    redeemOwnCode: (value, expected) => engine().redeemOwnCode(value, expected),
    readIdTokenSubject: (token) => engine().readIdTokenSubject(token),
    isMember: (...args) => engine().organizations.isMember(...args),
    isOpen: (sid) => engine().sessions.isOpen(sid),
  };
}

/** Returns the dependencies of logins that users approve on another device (CIBA). */
function approving({ authenticators, config, webPush }: Capabilities) {
  return {
    devicesOf: approvingDevices({ authenticators, config, webPush }),
    hasRealm: (clientId: string, realm: string) => hasRealm(config, clientId, realm),
  };
}

/** Returns what ends a login in the browser, and what ends with an account: a login may link two accounts. */
function loginEnds(
  deps: ServedDependencies,
  capabilities: Capabilities,
  {
    interactions,
    settle,
    sessions,
    factors,
    secondFactor,
  }: Engine & { factors: FactorDependencies; secondFactor: SecondFactor },
) {
  const endings = accountEndings({ ...deps, ...capabilities, sessions });
  const linked = linkAfterLogin({
    ...deps,
    ...capabilities,
    endLinked: endings.endLinked,
    losesFactor: (users) => losesFactor(factors, users),
  });
  const afterLogin = offerAfterLogin({ ...deps, ...capabilities, secondFactor }, linked);
  const finish = createFinish({ interactions, settle, afterLogin, wallClock: deps.wallClock });
  return { endings, finish, secondFactor };
}

/** Returns the dependencies of logins at other identity providers. */
function upstreamDependencies(
  { settings, store, clock, wallClock, random }: ServedDependencies,
  { challenges, config, outbound, scripts, signing, xml }: Capabilities,
) {
  return {
    baseUrl: settings.baseUrl,
    config,
    fetch: outbound.fetch,
    pendingLogins: pendingLogins({ challenges, clock, random }),
    testLogins: testLogins({ challenges, random }),
    runScript: scriptRunner(scripts),
    sign: signing.sign,
    store,
    openId: openIdProviders({ fetch: outbound.fetch, clock }),
    samlMetadata: samlMetadata({ fetch: outbound.fetch, clock, xml }),
    xml,
    clock,
    wallClock,
    random,
  };
}

/** Returns the grants and logout channels that the features contribute to the engine. */
function engineParts(
  { store, users, log, clock, wallClock, random }: ServedDependencies,
  {
    attempts,
    callers,
    challenges,
    config,
    customDatabases,
    directories,
    events,
    leases,
    limitLogin,
    rateLimits,
  }: Capabilities,
  own: {
    factors: ReturnType<typeof factorDependencies>;
    mfaApi: string;
    readApiToken: ApiTokenReader;
    backChannelLogout: LogoutChannel;
    idp: IdentityProvider;
    exchanges: ReturnType<typeof tokenExchanges>;
    isOpen: ExchangeDependencies['isOpen'];
    upstream: ReturnType<typeof upstreamDependencies>;
  },
) {
  const { factors, mfaApi, readApiToken, backChannelLogout, idp, exchanges } = own;
  const proofs = {
    attempts,
    callers,
    challenges,
    config,
    customDatabases,
    directories,
    events,
    users,
    wallClock,
  };
  const firstFactors = [
    bindEngineParts(database, { ...proofs, limitLogin }),
    bindEngineParts(passwordless, proofs),
  ];
  const parts = [
    ...firstFactors,
    bindEngineParts(passkeys, { ...factors, store }),
    bindEngineParts(upstreamLogins, {
      ...own.upstream,
      users,
      events,
      leases,
      log,
      rateLimits,
      ...exchanges,
    }),
    bindEngineParts(ciba, { challenges, clock, config }),
    bindEngineParts(device, { challenges, config, clock, random, isOpen: own.isOpen }),
    bindEngineParts(mfa, { ...factors, mfaApi, readApiToken }),
    bindEngineParts(logout, { config, backChannel: backChannelLogout }),
    bindEngineParts(saml, { clock, config, idp, random, store }),
  ];
  return { firstFactors, parts };
}

export type TenantEngine = Awaited<ReturnType<typeof createTenantEngine>>;
