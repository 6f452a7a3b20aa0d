// The engine: oidc-provider, configured for a tenant, and its interface to the rest of Gatehouse.
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import Provider, {
  type AccessToken,
  type ClientCredentials,
  type Configuration,
  errors,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import type { Actions } from '../../capabilities/actions/actions.ts';
import { rememberBegun } from '../../http/begun-requests.ts';
import { scopeValues } from '../../records/clients/apis.ts';
import type { ResourceServer as Api } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import {
  createOrganizations,
  machineOrganizations,
  type Organizations,
  organizationOf,
} from '../admission/admission.ts';
import { permittedScopes } from '../admission/audience.ts';
import { INTERACTION_SECONDS, sessionLifetime } from '../admission/lifetimes.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import type { UseTicket } from '../authorize/authorization-parameters.ts';
import { type AuthorizationEndpoint, authorizationEndpoint } from '../authorize/authorize.ts';
import { type PushRequest, parEndpoint } from '../authorize/par-endpoint.ts';
import { pushedRequests } from '../authorize/pushed-requests.ts';
import { requestReader } from '../authorize/received-request.ts';
import { logInSilently } from '../authorize/silent-login.ts';
import { bindBrowser, type WaitingRequests, waitingRequests } from '../authorize/waiting-requests.ts';
import { type Commits, createCommits, createReadAhead, type ReadAhead } from '../base/commit.ts';
import { basicReader, type EnterEngine, engineEntrance, type ReadBasic } from '../base/entrance.ts';
import { engineFailures } from '../base/failures.ts';
import { makeProvider, wrapGrants } from '../base/internals.ts';
import { registerMessageModes } from '../base/message-modes.ts';
import { isOidcScope, toAudience } from '../base/request-extensions.ts';
import { type PublishedKeys, publishedKeys } from '../base/signed-tokens.ts';
import { certificateBinding } from '../binding/certificate-binding.ts';
import {
  type CheckPossession,
  loadProofState,
  type ProofState,
  proofOfPossession,
} from '../binding/proof-of-possession.ts';
import {
  type CustomClaims,
  createCustomClaims,
  type TokenUsers,
  type VerifiedUsers,
} from '../claims/claims.ts';
import { applicationSettings } from '../client/applications.ts';
import { type ClientDocuments, clientDocuments } from '../client/client-documents.ts';
import {
  authenticateClient,
  type ClientAssertions,
  clientAssertions,
} from '../client/engine-client-authentication.ts';
import { recordUse } from '../client/registration-use.ts';
import { browserLogins } from '../login/browser-login.ts';
import { type LoginActions, loginActions, loginExecutions } from '../login/login-actions.ts';
import { createSettlement, type Settlement } from '../login/settle.ts';
import { addSessionState } from '../session/session-management.ts';
import {
  type SessionTransfers,
  sessionTransfers,
  transferRedemption,
  transferredSessions,
} from '../session/session-transfer.ts';
import { createSessions, type Sessions } from '../session/sessions.ts';
import { type Introspect, introspection } from '../token/introspection.ts';
import { replaceOldTokens } from '../token/moved-refresh-tokens.ts';
import { refreshTargets } from '../token/refresh.ts';
import { type IdTokenReaders, idTokenReaders } from '../token/sent-id-tokens.ts';
import { type RedeemServerLoginCode, serverLoginCodes } from '../token/server-login-codes.ts';
import { type TokenEndpoint, tokenEndpoint } from '../token/token-endpoint.ts';
import { storeGrants } from '../token/token-grants.ts';
import { type Userinfo, type UserinfoDependencies, userinfo } from '../token/userinfo.ts';
import { adaptEngine } from './adaptations.ts';
import {
  type BindWaitingRequest,
  type EngineDependencies,
  engineConfiguration,
} from './provider-configuration.ts';
import { renewal } from './renewal.ts';

export interface Engine extends IdTokenReaders {
  /** Passes a request to the engine unchanged. */
  enter: EnterEngine;
  sendDiscovery: SendDocument;
  authorization: AuthorizationEndpoint;
  pushRequest: PushRequest;
  tokens: TokenEndpoint;
  waitingRequests: WaitingRequests;
  settle: Settlement;
  organizations: Organizations;
  customClaims: CustomClaims;
  redeemServerLoginCode: RedeemServerLoginCode;
  sessions: Sessions;
  userinfo: Userinfo;
  keys: PublishedKeys;
  introspect: Introspect;
  checkPossession: CheckPossession;
  /** @see ClientAssertions */
  reuseAfterLimit: ClientAssertions['reuseAfterLimit'];
  clientDocuments: ClientDocuments;
  /** @see authenticateClient */
  authenticateClient(ctx: Context): Promise<string>;
  /** Stores what only this process knows for the next one. Called at the stop, when no more requests come. */
  storeUsedProofs(): Promise<void>;
}

function bindInteractionTo(browsers: WeakMap<IncomingMessage, string>): BindWaitingRequest {
  return (ctx, uid) => {
    const secret = browsers.get(ctx.req);
    if (secret === undefined) throw new Error('a request waits that came by no endpoint of ours');
    bindBrowser(ctx, uid, secret, INTERACTION_SECONDS);
    const { client } = (ctx as KoaContextWithOIDC).oidc;
    if (client !== undefined) rememberBegun(ctx, uid, client.clientId);
  };
}

/** Collects the silent requests that are answered with `login_required` because nobody is logged in at their browser. */
function requestsLackingLogin(provider: Provider): WeakSet<IncomingMessage> {
  const requests = new WeakSet<IncomingMessage>();
  provider.on('authorization.error', (ctx, error) => {
    if (!(error instanceof errors.LoginRequired) || !ctx.oidc.prompts.has('none')) return;
    if (ctx.oidc.session?.accountId === undefined) requests.add(ctx.req);
  });
  return requests;
}

// docs/understand/decisions/authorize.md#every-authorization-response-has-iss
/** Adds `iss`, which RFC 9207 requires in every response; the engine omits it beside an ID token. */
function nameIssuer(provider: Provider, issuer: string): void {
  provider.on('authorization.success', (_ctx, response) => {
    if (response !== undefined) response.iss = issuer;
  });
}

/**
 * Keeps errors of a stranger's application on a page of this server until the user has seen where the application is:
 * otherwise a link to this server would lead anywhere (RFC 9700 §4.11.2). The engine asks an error, after it has announced
 * it, whether it may leave.
 */
function protectRedirects(provider: Provider): void {
  const keep = ({ oidc }: KoaContextWithOIDC, error: Error) => {
    const { client, entities } = oidc;
    const isSeen = entities.Interaction?.prompt.name === 'consent';
    if (client === undefined || isSeen || !applicationSettings(client).isRedirectProtected) return;
    Object.assign(error, { allow_redirect: false });
  };
  provider.on('authorization.error', keep);
  provider.on('server_error', keep);
}

/** Counts the responses of the authorization endpoint that contain tokens. */
function measureImplicit(provider: Provider, { measures }: Pick<EngineDependencies, 'measures'>): void {
  if (measures === undefined) return;
  provider.on('authorization.success', (_ctx, response) => {
    if (response?.access_token !== undefined || response?.id_token !== undefined)
      measures.tokensIssued('implicit');
  });
}

function adaptedProvider(
  deps: EngineDependencies & {
    commits: Commits;
    ahead: ReadAhead;
    customClaims: CustomClaims;
    loginActions: LoginActions;
    transfers: SessionTransfers;
    tokenUsers: TokenUsers;
    organizations: Organizations;
    proofs: ProofState;
  },
  configuration: Configuration,
): Provider {
  const provider = makeProvider(deps.issuer, configuration);
  // Forwarding headers were handled before the engine.
  provider.proxy = false;
  const bindToCertificate = certificateBinding(deps);
  adaptEngine(provider, {
    ...deps,
    ...deps.proofs,
    bind: async (ctx, token) => {
      await bindToCertificate(ctx, token);
      const changed = applyScopes(deps, ctx, token);
      if (changed !== undefined) await changed;
    },
  });
  // The engine uses the code or token up first; all that is issued for it is then stored in one commit.
  wrapGrants(provider, ['authorization_code', 'refresh_token'], (work, ctx) =>
    deps.ahead.run(() =>
      deps.commits.inOneCommit([], async () => {
        await work();
        await deps.transfers.answerRefresh(ctx);
      }),
    ),
  );
  // Before the commit, in which the grant of the token that it puts in the place of the old one would not be found.
  if (deps.oldRefreshTokens !== undefined) {
    const replaceOldToken = replaceOldTokens(provider, deps.oldRefreshTokens, deps);
    wrapGrants(provider, ['refresh_token'], async (work, ctx) => {
      await replaceOldToken(ctx);
      await work();
    });
  }
  registerMessageModes(provider, deps.errorPage);
  nameIssuer(provider, deps.issuer);
  protectRedirects(provider);
  measureImplicit(provider, deps);
  addSessionState(provider, deps);
  return provider;
}

function requestUsers(): { verifiedUsers: VerifiedUsers; tokenUsers: TokenUsers } {
  return { verifiedUsers: new WeakMap(), tokenUsers: new WeakMap() };
}

export async function createEngine(deps: EngineDependencies): Promise<Engine> {
  const { baseUrl, issuer, config, clock, wallClock, log } = deps;
  await deps.signing.start();
  const proofs = await loadProofState(deps);
  const browsers = new WeakMap<IncomingMessage, string>();
  const organizations = createOrganizations(deps);
  const requestTargets = { machines: machineOrganizations(config), targets: refreshTargets(config) };
  const settle = createSettlement({ ...deps, organizations });
  const endSession = (sid: string) => sessions.end(sid, { reason: 'session-revoked' });
  const parts = createParts({ ...deps, endSession, isOpen: (sid) => sessions.isOpen(sid) }, organizations);
  const users = requestUsers();
  const shared = { ...deps, ...parts, ...requestTargets, ...users, organizations, settle, proofs };
  const logins = browserLogins({
    ...shared,
    sessionLifetime: (session) => sessionLifetime(config, clock, session),
  });
  const useTicket: UseTicket = (ctx) => logInSilently({ ...shared, sessions }, ctx);
  const provider = adaptedProvider(
    shared,
    engineConfiguration(shared, () => grantTypes(), useTicket, bindInteractionTo(browsers), logins),
  );
  const failures = engineFailures(provider, log);
  const possession = proofOfPossession(provider, { ...deps, usedProofs: proofs.usedProofs });
  const { check: checkPossession } = possession;
  const { renew, grantTypes } = renewal(provider, { ...shared, failures, possession, baseUrl });
  await refuseInvalidApplications(provider, config);
  const sessions = createSessions(provider, shared);
  const readBasic = basicReader(config);
  const enter = engineEntrance(provider, renew, readBasic);
  const grantStorage = storeGrants(provider, parts.loginActions);
  const waiting = waitingRequests(provider, deps);
  const lackingLogin = requestsLackingLogin(provider);
  const documents = clientDocuments(deps);
  const receiving = { enter, requestReader: requestReader({ ...shared, issuer, documents }) };
  const authorizing = {
    ...{ ...receiving, provider, sessions, grantStorage, browsers, lackingLogin, waitingRequests: waiting },
  };
  return {
    enter,
    sendDiscovery: cachedDocument(config),
    authorization: authorizationEndpoint({ ...shared, ...authorizing, documents }),
    pushRequest: parEndpoint({ ...shared, ...receiving, documents, failures, readBasic }),
    tokens: tokenEndpoint({
      ...deps,
      ...requestTargets,
      failures,
      enter,
      documents,
      recordUse: (clientId) => recordUse(deps, clientId),
    }),
    waitingRequests: waiting,
    settle,
    organizations,
    customClaims: parts.customClaims,
    redeemServerLoginCode: serverLoginCodes(provider),
    sessions,
    ...tokenReaders({ ...shared, provider, readBasic, clock: wallClock, checkPossession, sessions }),
    checkPossession,
    reuseAfterLimit: parts.assertions.reuseAfterLimit,
    clientDocuments: documents,
    storeUsedProofs: proofs.usedProofs.storeUsedProofs,
  };
}

function createParts(
  deps: EngineDependencies & { endSession: (sid: string) => Promise<unknown>; isOpen: Sessions['isOpen'] },
  organizations: Organizations,
) {
  const executions = loginExecutions(deps.actions);
  const transferred = transferredSessions(deps);
  return {
    customClaims: createCustomClaims(deps),
    executions,
    loginActions: loginActions({ ...deps, organizations, executions }),
    commits: createCommits(deps.store),
    ahead: createReadAhead(deps.store, deps.users),
    assertions: clientAssertions(deps),
    pushedRequests: pushedRequests(deps),
    transferred,
    transferRedemption: transferRedemption({ ...deps, transferred }),
    transfers: sessionTransfers(deps),
  };
}

/**
 * Validates each application's metadata (RFC 7591 §2) with the engine at start; an invalid one would fail every request of
 * that application.
 * @throws Error that names them all.
 */
async function refuseInvalidApplications(provider: Provider, config: Config): Promise<void> {
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

// The discovery document (OpenID Connect Discovery 1.0 §4, RFC 8414 §3), made once for each revision of the configuration.

/** Answers with the document. @param make makes it and sets `ctx.body`. */
type SendDocument = (ctx: Context, make: () => Promise<void>) => Promise<void>;

/** Makes a {@link SendDocument} that answers with the same bytes until the configuration changes. */
function cachedDocument(config: Pick<Config, 'revision'>): SendDocument {
  let cached: { revision: number; document: Buffer } | undefined;
  return async (ctx, make) => {
    // Read before the document is made, so that one made while the configuration changes is made again at the next
    // request.
    const revision = config.revision();
    if (cached?.revision !== revision) {
      await make();
      if (ctx.status !== 200) return;
      cached = { revision, document: Buffer.from(JSON.stringify(ctx.body)) };
    }
    ctx.type = 'json';
    ctx.body = cached.document;
  };
}

// Applies the scopes that actions add to an access token or remove from it.

interface ScopeDependencies {
  config: Pick<Config, 'resourceServer'>;
  actions: Pick<Actions, 'recordRefusal'>;
  loginActions: Pick<LoginActions, 'claimsOf'>;
  users: Pick<Users, 'permissionsAt'>;
  organizations: Pick<Organizations, 'rolesOf'>;
  tokenUsers: TokenUsers;
}

// docs/understand/decisions/actions-scripts.md#scopes-that-actions-add-must-be-scopes-of-the-api
/**
 * Changes the scope of an access token that is about to be stored, as actions said. OpenID Connect scopes cannot be added,
 * because the user was not asked for them; `openid` cannot be removed, because the protocol depends on it. Scopes of the
 * Management API cannot be added.
 * @returns undefined when there is nothing to do.
 */
function applyScopes(
  deps: ScopeDependencies,
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
): Promise<void> | undefined {
  const { scopes = {}, targetScopes } = ('accountId' in token && deps.loginActions.claimsOf(ctx)) || {};
  if (ctx === undefined || (Object.keys(scopes).length === 0 && targetScopes === undefined)) return undefined;
  return changeScopes(deps, { ctx, token, scopes, targetScopes });
}

interface ScopeChange {
  ctx: KoaContextWithOIDC;
  token: AccessToken | ClientCredentials;
  /** True for a scope that is added, false for one that is removed. An added one needs no permission of the user. */
  scopes: Readonly<Record<string, boolean>>;
  /** The scopes that the token is to have, of those that application and user may have. */
  targetScopes: readonly string[] | undefined;
}

async function changeScopes(deps: ScopeDependencies, change: ScopeChange): Promise<void> {
  const { config, actions } = deps;
  const { ctx, token, scopes } = change;
  const resource = token.resourceServer?.identifier();
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const openApi = api?.is_system === true ? undefined : api;
  const known = new Set(openApi?.scopes.map(({ value }) => value));
  const remaining = new Set(await withinTargets(deps, change, openApi));
  const refused: string[] = [];
  for (const [scope, isAdded] of Object.entries(scopes)) {
    const isOidc = isOidcScope(scope);
    if (isAdded && known.has(scope) && !isOidc) remaining.add(scope);
    else if (isAdded && !remaining.has(scope)) refused.push(`addScope ${scope}`);
    else if (!isAdded && scope !== 'openid') remaining.delete(scope);
    else if (!isAdded) refused.push('removeScope openid');
  }
  if (refused.length > 0) {
    const about = { client_id: ctx.oidc.client?.clientId, user_id: ctx.oidc.account?.accountId, ip: ctx.ip };
    actions.recordRefusal('post-login', refused.join(', ').slice(0, 500), about);
  }
  Object.assign(token, { scope: [...remaining].join(' ') || undefined });
}

/**
 * Returns the target scopes that the token may have: those that it has, and those of the API that its user is permitted, for
 * an application that needs no consent. Others are left out silently, as with the hosted service.
 */
async function withinTargets(
  deps: ScopeDependencies,
  { ctx, token, targetScopes }: ScopeChange,
  api: Api | undefined,
): Promise<string[]> {
  const granted = scopeValues(token.scope);
  if (targetScopes === undefined) return granted;
  const { client } = ctx.oidc;
  const mayAdd = api !== undefined && client !== undefined && applicationSettings(client).firstParty;
  const user = deps.tokenUsers.get(ctx.oidc);
  const permitted = mayAdd
    ? await permittedScopes(deps, api, user as User | undefined, organizationOf(ctx))
    : [];
  const targets = new Set(targetScopes);
  const added = permitted.filter((scope) => targets.has(scope) && !isOidcScope(scope));
  return [...granted.filter((scope) => scope === 'openid' || targets.has(scope)), ...added];
}

// Wires the readers of our tokens and of client credentials. Each uses the tenant's present keys.

interface ReaderDependencies extends Omit<UserinfoDependencies, 'keys'> {
  users: Users;
  readBasic: ReadBasic;
  organizations: Organizations;
  sessions: Pick<Sessions, 'loginOf' | 'isOpen' | 'grantOf'>;
  secondFactor: Pick<SecondFactor, 'isSufficient'>;
}

/** Makes the readers of one provider. */
function tokenReaders(deps: ReaderDependencies) {
  const { provider, config } = deps;
  const { issuer } = provider;
  const keys = publishedKeys(config, { issuer, clock: deps.clock });
  const ofClient = (ctx: Context) => authenticateClient(provider, deps.readBasic, ctx);
  return {
    keys,
    userinfo: userinfo({ ...deps, keys }),
    introspect: introspection({ ...deps, authenticateClient: ofClient, issuer, keys }),
    ...idTokenReaders({ ...deps, issuer, keys }),
    authenticateClient: ofClient,
  };
}
