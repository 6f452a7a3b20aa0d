// The engine: oidc-provider, configured for a tenant, and its interface to the rest of Gatehouse.

import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import Provider, { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { rememberBegun } from '../http/begun-requests.ts';
import type { Config } from '../tenant/config.ts';
import { applyScopes } from './action-scopes.ts';
import { adaptEngine } from './adaptations.ts';
import { hashOldKeys } from './artifact-keys.ts';
import { type AuthorizationEndpoint, authorizationEndpoint } from './authorize.ts';
import { basicReader } from './basic-credentials.ts';
import { browserLogins } from './browser-login.ts';
import { certificateBinding } from './certificate-binding.ts';
import type { VerifiedUsers } from './claims.ts';
import { type ClientAssertions, clientAssertions } from './client-assertion.ts';
import { type Commits, createCommits } from './commit.ts';
import { type BindInteraction, type EngineDependencies, engineConfiguration } from './configuration.ts';
import { type CustomClaims, createCustomClaims } from './custom-claims.ts';
import { cachedDocument, type SendDocument } from './discovery-document.ts';
import { loadProofState, type ProofState } from './dpop.ts';
import type { TokenUsers } from './email-at-issue.ts';
import { type EnterEngine, engineEntrance } from './entrance.ts';
import { engineFailures } from './failures.ts';
import { storeGrants } from './grants.ts';
import { interactions } from './interaction.ts';
import { bindBrowser } from './interaction-browser.ts';
import { makeProvider, wrapGrants } from './internals.ts';
import type { Introspect } from './introspection.ts';
import { INTERACTION_SECONDS, sessionLifetime } from './lifetimes.ts';
import { type LoginActions, loginActions } from './login-actions.ts';
import { loginExecutions } from './login-executions.ts';
import { machineOrganizations } from './machine-organizations.ts';
import { registerMessageModes } from './message-modes.ts';
import { createOrganizations, type Organizations } from './organizations.ts';
import { type RedeemOwnCode, redeemOwnCodes } from './own-codes.ts';
import { type PushRequest, parEndpoint } from './par-endpoint.ts';
import type { UseTicket } from './parameter-checks.ts';
import type { Interactions } from './pending-interaction.ts';
import { type CheckPossession, proofOfPossession } from './proof-of-possession.ts';
import type { PublishedKeys } from './published-keys.ts';
import { pushedRequests } from './pushed-requests.ts';
import { createReadAhead, type ReadAhead } from './read-ahead.ts';
import { requestReader } from './received-request.ts';
import { refreshTargets } from './refresh-targets.ts';
import { renewal } from './renewal.ts';
import type { IdTokenReaders } from './sent-id-tokens.ts';
import { addSessionState } from './session-management.ts';
import { type SessionTransfers, sessionTransfers } from './session-transfer.ts';
import { transferredSessions } from './session-transfer-checks.ts';
import { transferRedemption } from './session-transfer-redemption.ts';
import { createSessions, type Sessions } from './sessions.ts';
import { createSettlement, type Settlement } from './settle.ts';
import { logInSilently } from './silent-login.ts';
import { type TokenEndpoint, tokenEndpoint } from './token-endpoint.ts';
import { tokenReaders } from './token-readers.ts';
import type { Userinfo } from './userinfo.ts';

export interface Engine extends IdTokenReaders {
  /** Passes a request to the engine unchanged. */
  enter: EnterEngine;
  sendDiscovery: SendDocument;
  authorization: AuthorizationEndpoint;
  pushRequest: PushRequest;
  tokens: TokenEndpoint;
  interactions: Interactions;
  settle: Settlement;
  organizations: Organizations;
  customClaims: CustomClaims;
  redeemOwnCode: RedeemOwnCode;
  sessions: Sessions;
  userinfo: Userinfo;
  keys: PublishedKeys;
  introspect: Introspect;
  checkPossession: CheckPossession;
  /** @see ClientAssertions */
  reuseAfterLimit: ClientAssertions['reuseAfterLimit'];
  /** @see authenticateClient */
  authenticateClient(ctx: Context): Promise<string>;
  /** Stores what only this process knows for the next one. Called at the stop, when no more requests come. */
  storeUsedProofs(): Promise<void>;
}

function bindInteractionTo(browsers: WeakMap<IncomingMessage, string>): BindInteraction {
  return (ctx, uid) => {
    const secret = browsers.get(ctx.req);
    if (secret === undefined) throw new Error('a request waits that came by no endpoint of ours');
    bindBrowser(ctx, uid, secret, INTERACTION_SECONDS);
    const { client } = (ctx as KoaContextWithOIDC).oidc;
    if (client !== undefined) rememberBegun(ctx, uid, client.clientId);
  };
}

/** Adds `iss`, which RFC 9207 requires in every response; the engine omits it beside an ID token. */
function nameIssuer(provider: Provider, issuer: string): void {
  provider.on('authorization.success', (_ctx, response) => {
    if (response !== undefined) response.iss = issuer;
  });
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
  const provider = makeProvider(deps.settings.issuer, configuration);
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
  registerMessageModes(provider, deps.errorPage);
  nameIssuer(provider, deps.settings.issuer);
  measureImplicit(provider, deps);
  addSessionState(provider, deps);
  return provider;
}

/** Makes the records of which users a request is about. */
function requestUsers(): { verifiedUsers: VerifiedUsers; tokenUsers: TokenUsers } {
  return { verifiedUsers: new WeakMap(), tokenUsers: new WeakMap() };
}

/** Builds the engine of a tenant. */
export async function createEngine(deps: EngineDependencies): Promise<Engine> {
  const { settings, store, config, clock, wallClock, log } = deps;
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
  const { baseUrl, issuer } = settings;
  const { renew, grantTypes } = renewal(provider, { ...shared, failures, possession, baseUrl });
  await refuseInvalidApplications(provider, config);
  await hashOldKeys(store);
  const sessions = createSessions(provider, shared);
  const readBasic = basicReader(config);
  const enter = engineEntrance(provider, renew, readBasic);
  const grants = storeGrants(provider, parts.loginActions);
  const waiting = interactions(provider, deps);
  const receiving = { enter, requestReader: requestReader({ ...shared, issuer }) };
  const authorizing = { ...receiving, provider, sessions, grants, browsers, interactions: waiting };
  return {
    enter,
    sendDiscovery: cachedDocument(config),
    authorization: authorizationEndpoint({ ...shared, ...authorizing }),
    pushRequest: parEndpoint({ ...shared, ...receiving, failures, readBasic }),
    tokens: tokenEndpoint({ ...deps, ...requestTargets, failures, enter }),
    interactions: waiting,
    settle,
    organizations,
    customClaims: parts.customClaims,
    redeemOwnCode: redeemOwnCodes(provider),
    sessions,
    ...tokenReaders({ ...shared, provider, readBasic, clock: wallClock, checkPossession, sessions }),
    checkPossession,
    reuseAfterLimit: parts.assertions.reuseAfterLimit,
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
