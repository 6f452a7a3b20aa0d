// The engine: oidc-provider, configured for a tenant, and its interface to the rest of Gatehouse.

import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import Provider, { type Configuration, errors } from 'oidc-provider';
import type { Logger } from 'pino';
import { AuthError } from '../http/errors.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { LoginTickets } from '../protection/login-tickets.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import type { Users } from '../users/users.ts';
import { accessTokenFormat } from './access-token.ts';
import { createAdapter } from './adapter.ts';
import { applicationSettings, RESPONSE_TYPES, SETTINGS_PROPERTY } from './applications.ts';
import { hashOldKeys } from './artifact-keys.ts';
import { resourceIndicators } from './audience.ts';
import { type AuthorizationEndpoint, authorizationEndpoint, type CheckRequest } from './authorize.ts';
import { type BrowserLogins, browserLogins } from './browser-login.ts';
import { accounts, claimsByScope, type JudgedUsers, OIDC_SCOPES } from './claims.ts';
import { authenticateClient } from './client-authentication.ts';
import { type Commits, createCommits } from './commit.ts';
import { type EnterEngine, engineEntrance } from './entrance.ts';
import { engineFailures } from './failures.ts';
import { keepGrants, loadGrant } from './grants.ts';
import { idTokenHints, type ReadIdTokenHint } from './id-token-hint.ts';
import { type Interactions, interactionPath, interactions } from './interaction.ts';
import { bindBrowser } from './interaction-browser.ts';
import { adaptEngine } from './internals.ts';
import { ensureSigningKeys } from './keys.ts';
import { INTERACTION_SECONDS, lifetimes, sessionLifetime } from './lifetimes.ts';
import type { LogoutChannels } from './logout-channels.ts';
import { type ErrorPage, registerMessageModes } from './message-modes.ts';
import { createOrganizations, type Organizations } from './organizations.ts';
import { type OwnCallbacks, type RedeemOwnCode, redeemOwnCodes } from './own-codes.ts';
import { type ConnectionFault, extraParameters, type UseTicket } from './parameter-checks.ts';
import { policy } from './policy.ts';
import { type PublishedKeys, publishedKeys } from './published-keys.ts';
import { keepRefreshTokenAlive } from './refresh.ts';
import { privateKeySet, renewal } from './renewal.ts';
import type { SecondFactor } from './second-factor.ts';
import { createSessions, type Sessions } from './sessions.ts';
import { createSettle, type Settle } from './settle.ts';
import { logInSilently } from './silent-login.ts';
import { type TokenEndpoint, tokenEndpoint } from './token-endpoint.ts';
import type { VendorGrant } from './tokens.ts';
import { type Userinfo, userinfo } from './userinfo.ts';

interface EngineDependencies {
  /** The public origin; the issuer is it with a slash. */
  settings: { baseUrl: string; issuer: string };
  store: Store;
  config: Config;
  users: Users;
  /** Never goes back; for durations. */
  clock: Clock;
  /** For dates in tokens. */
  wallClock: Clock;
  random: Random;
  log: Logger;
  challenges: Challenges;
  events: Events;
  tickets: LoginTickets;
  /** Grant types beyond the engine's. */
  grants: VendorGrant[];
  secondFactor: SecondFactor;
  /** Authentication context classes that a request may ask for. */
  acrValues: readonly string[];
  errorPage: ErrorPage;
  ownCallbacks: OwnCallbacks;
  checkRequest: CheckRequest;
  connectionFault: ConnectionFault;
  /** Told when a session ends. */
  logoutChannels: LogoutChannels;
}

export interface Engine {
  /** Hands a request to the engine as it came. */
  enter: EnterEngine;
  authorization: AuthorizationEndpoint;
  tokens: TokenEndpoint;
  interactions: Interactions;
  settle: Settle;
  organizations: Organizations;
  redeemOwnCode: RedeemOwnCode;
  sessions: Sessions;
  userinfo: Userinfo;
  keys: PublishedKeys;
  readIdTokenHint: ReadIdTokenHint;
  /** @see authenticateClient */
  authenticateClient(ctx: Context): Promise<string>;
}

/** Binds a waiting request to its browser. */
type BindInteraction = (ctx: Context, uid: string) => void;

function bindTo(browsers: WeakMap<IncomingMessage, string>): BindInteraction {
  return (ctx, uid) => {
    const secret = browsers.get(ctx.req);
    if (secret === undefined) throw new Error('a request waits that came by no endpoint of ours');
    bindBrowser(ctx, uid, secret, INTERACTION_SECONDS);
  };
}

/** RFC 9207 wants `iss` in every response; the engine leaves it out beside an ID token. */
function nameIssuer(provider: Provider, issuer: string): void {
  provider.on('authorization.success', (_ctx, response) => {
    if (response !== undefined) response.iss = issuer;
  });
}

/** Builds the engine of a tenant. */
export async function createEngine(deps: EngineDependencies): Promise<Engine> {
  const { settings, store, config, users, clock, wallClock, log } = deps;
  await ensureSigningKeys(store, wallClock, new URL(settings.baseUrl).hostname);
  await config.refresh();
  const browsers = new WeakMap<IncomingMessage, string>();
  const organizations = createOrganizations(deps);
  const settle = createSettle({ ...deps, organizations });
  const commits = createCommits(store);
  const judged: JudgedUsers = new WeakMap();
  const shared = { ...deps, organizations, settle, commits, judged };
  const logins = browserLogins({
    ...deps,
    organizations,
    settle,
    sessionLifetime: (session) => sessionLifetime(config, clock, session),
  });
  const useTicket: UseTicket = (ctx, ticket) => logInSilently({ ...deps, settle, sessions }, ctx, ticket);
  const provider = new Provider(
    settings.issuer,
    configuration(shared, () => grantTypes(), useTicket, bindTo(browsers), logins),
  );
  // Forwarding headers were handled before the engine.
  provider.proxy = false;
  adaptEngine(provider, deps);
  registerMessageModes(provider, deps.errorPage);
  const failures = engineFailures(provider, log);
  const { renew, grantTypes } = renewal(provider, { ...shared, failures, baseUrl: settings.baseUrl });
  nameIssuer(provider, settings.issuer);
  await refuseUnfitApplications(provider, config);
  await hashOldKeys(store);
  const sessions = createSessions(provider, { store, clock, logoutChannels: deps.logoutChannels });
  const keys = publishedKeys(config);
  const enter = engineEntrance(provider, renew);
  const grants = keepGrants(provider);
  return {
    enter,
    authorization: authorizationEndpoint({ ...deps, provider, sessions, enter, grants, browsers }),
    tokens: tokenEndpoint({ ...deps, failures, enter }),
    interactions: interactions(provider, { store, users }),
    settle,
    organizations,
    redeemOwnCode: redeemOwnCodes(provider),
    sessions,
    keys,
    userinfo: userinfo({ provider, keys, config, users, clock: wallClock }),
    readIdTokenHint: idTokenHints({ issuer: settings.issuer, keys, config }),
    authenticateClient: (ctx) => authenticateClient(provider, ctx),
  };
}

/**
 * Validates each application's metadata (RFC 7591 §2) with the engine at start; an invalid one would fail every request of
 * that application.
 * @throws Error that names them all.
 */
async function refuseUnfitApplications(provider: Provider, config: Config): Promise<void> {
  const faults: string[] = [];
  for (const { client_id: id } of await config.clients()) {
    try {
      await provider.Client.find(id);
    } catch (thrown) {
      if (!(thrown instanceof errors.InvalidClientMetadata)) throw thrown;
      faults.push(`  - ${id}: ${thrown.error_description}`);
    }
  }
  if (faults.length > 0) throw new Error(['These applications cannot be served:', ...faults].join('\n'));
}

/** The engine's configuration. Long, because it is one object of the engine's own. */
function configuration(
  deps: EngineDependencies & { commits: Commits; judged: JudgedUsers; organizations: Organizations },
  grantTypes: () => ReadonlySet<string>,
  useTicket: UseTicket,
  bind: BindInteraction,
  logins: BrowserLogins,
): Configuration {
  const { settings, store, config, clock, wallClock } = deps;
  return {
    adapter: createAdapter({ ...deps, grantTypes }),
    jwks: privateKeySet(config.signingKeys()),
    routes: {
      authorization: '/authorize',
      token: '/oauth/token',
      revocation: '/oauth/revoke',
      userinfo: '/userinfo',
      jwks: '/.well-known/jwks.json',
      end_session: '/oidc/logout',
    },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      claimsParameter: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: {
        enabled: true,
        // Another client's token is neither revoked nor revealed (RFC 7009 §2.1).
        allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
      },
      resourceIndicators: { enabled: true, ...resourceIndicators(deps) },
    },
    enableHttpPostMethods: false,
    scopes: [...OIDC_SCOPES],
    acrValues: [...deps.acrValues],
    claims: claimsByScope,
    responseTypes: RESPONSE_TYPES,
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    enabledJWA: {
      clientAuthSigningAlgValues: ['RS256', 'RS384', 'PS256', 'PS384', 'ES256', 'ES384'],
      idTokenSigningAlgValues: ['RS256', 'HS256'],
    },
    // SDKs read the profile from the ID token (docs/decisions.md "User info").
    conformIdTokenClaims: false,
    allowOmittingSingleRegisteredRedirectUri: false,
    extraParams: extraParameters(deps, deps.ownCallbacks, useTicket),
    extraClientMetadata: { properties: [SETTINGS_PROPERTY] },
    cookies: cookies(),
    interactions: {
      policy: policy({ ...deps, ...logins, lacksDescription: deps.secondFactor.description }),
      url: (ctx, { uid }) => {
        bind(ctx as unknown as Context, uid);
        return interactionPath(uid);
      },
    },
    findAccount: logins.before(accounts(deps)),
    loadExistingGrant: loadGrant(deps, deps.ownCallbacks),
    // A logout does not revoke an application's tokens, as with the hosted service.
    expiresWithSession: () => false,
    rotateRefreshToken: async (ctx) => {
      const { RefreshToken: token, Client: client } = ctx.oidc.entities;
      if (token === undefined || client === undefined) return true;
      if (applicationSettings(client).refreshToken.rotation_type === 'rotating') return true;
      await keepRefreshTokenAlive({ store, clock, wallClock }, token, client);
      return false;
    },
    ttl: lifetimes(config, wallClock),
    formats: { customizers: { jwt: accessTokenFormat({ ...deps, issuer: settings.issuer }) } },
    // Our own CORS middleware answers.
    clientBasedCORS: () => true,
    renderError: (ctx, out, error) =>
      deps.errorPage(
        ctx as unknown as Context,
        new AuthError(ctx.status, out.error, out.error_description ?? 'The request is invalid.', {
          cause: error,
        }),
      ),
  };
}

/**
 * SameSite `None`, because silent logins frame /authorize from the application's site. A forged cross-site request ends at
 * a page that asks, or at the application's registered callback.
 */
function cookies(): Configuration['cookies'] {
  return {
    names: {
      session: '__Host-gatehouse_session',
      interaction: '__Secure-gatehouse_interaction',
      resume: '__Secure-gatehouse_resume',
    },
    long: { httpOnly: true, secure: true, sameSite: 'none', signed: false, path: '/' },
    short: { httpOnly: true, secure: true, sameSite: 'lax', signed: false },
  };
}
