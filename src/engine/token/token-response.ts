// The end of a login at the token endpoint: from the authenticated user to the token response.
import type { Client, Grant, KoaContextWithOIDC } from 'oidc-provider';
import { executionDetails } from '../../capabilities/actions/actions.ts';
import { AuthError } from '../../http/errors.ts';
import type { EventType } from '../../records/log-events.ts';
import type { Events } from '../../tenant/events.ts';
import { type Login, methodsOfFirstFactor } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import { actorOf, exchangeLimits } from '../admission/exchange-context.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import type { AuthorizationDetail } from '../base/authorization-details.ts';
import type { Commits } from '../base/commit.ts';
import { issueTokenResponse } from '../base/internals.ts';
import { isOidcScope, toAudience } from '../base/requested-audience.ts';
import type { ProvenKeys } from '../binding/proof-of-possession.ts';
import type { VerifiedUsers } from '../claims/claims.ts';
import type { LoginActions } from '../login/login-actions.ts';
import type { LoginExecutions } from '../login/login-runs.ts';
import type { Settlement } from '../login/settle.ts';
import { buildGrant, type GrantDependencies } from './grants.ts';
import { admittedResource, grantableScopes } from './requested-api.ts';

export interface TokenDependencies extends GrantDependencies, TokenLoginDependencies {
  events: Events;
  secondFactor: Pick<SecondFactor, 'refusal' | 'factorsOf'>;
  commits: Commits;
  executions: LoginExecutions;
}

/** What issuing tokens needs besides the parameters of the request. */
export interface TokenIssuance extends TokenRequest {
  /** The log event of the exchange, if it has one besides the login's. */
  event: EventType | undefined;
  /** The keys that the tokens are bound to. */
  keys: ProvenKeys;
  /** @see CompletedRequest.authorizationDetails */
  authorizationDetails?: AuthorizationDetail[] | undefined;
}

/**
 * Issues tokens to an authenticated user for the requested scopes and API.
 * @throws AuthError when the user is blocked or no member of the organization, a second factor is missing, or the
 *   application is a third party, which needs consent.
 */
export async function respondWithTokens(
  deps: TokenDependencies,
  ctx: KoaContextWithOIDC,
  firstLogin: Login,
  request: TokenIssuance,
): Promise<void> {
  const { provider, client } = ctx.oidc;
  if (client === undefined) throw new TypeError('a grant is asked for without an application');
  const { clientId } = client;
  // Again, because application and API may have changed while the user was authenticated.
  const resource = await admittedResource(deps, ctx, request.isFromPages);
  const scopes = await grantableScopes(deps, ctx, resource);
  const about = { ...request, clientId, resource };
  const factorsOf = (userId: string) => deps.secondFactor.factorsOf(userId);
  // Read together, with the login judged meanwhile: if the user's factors change in between, the grant has the
  // older value and is not honoured.
  const [{ login, user }, factorsBefore] = await Promise.all([
    verifyTokenLogin(deps, ctx, firstLogin, { ...about, scopes }),
    factorsOf(firstLogin.userId),
  ]);
  const { organization } = request;
  const grant = await buildGrant(
    deps,
    provider,
    { userId: login.userId, user, client, organization, isEntrusted: login.presence === 'present' },
    { scopes, resources: resource === undefined ? [] : [resource] },
  );
  if (!request.isFromPages) requireConsent(grant, scopes, resource);
  Object.assign(grant, {
    amr: [...login.amr],
    credentialVersion: login.credentialVersion,
    factors: login.userId === firstLogin.userId ? factorsBefore : await factorsOf(login.userId),
    presence: login.presence,
    ...(login.presence === 'present' && { authTime: login.authTime }),
    ...(organization !== undefined && { organization }),
    ...(login.connection !== '' && { connection: login.connection }),
  });
  const isRecorded = request.isRecorded === true && login.userId === firstLogin.userId;
  const refusal = await deps.settle.settle(login, clientId, {
    store: (...loginWrites) =>
      deps.commits.inOneCommit(loginWrites, () =>
        issue(ctx, login, client, { ...request, ...request.keys, grant, scopes, resource }),
      ),
    remove: () => Promise.all([grant.destroy(), provider.AccessToken.revokeByGrantId(grant.jti)]),
    execution: deps.executions.of(ctx),
    // Where an action has put another user in place of this one, that user's login is not recorded yet.
    isRecorded,
  });
  if (refusal !== undefined) throw refusal;
  recordExchange(deps, ctx, login, { type: request.event, clientId, isRecorded });
}

/**
 * Refuses what the user has not allowed, where nobody can ask the user: an application that exchanges a token would
 * otherwise get one without the scopes, and not know why.
 * @throws AuthError 403 `consent_required`
 */
function requireConsent(grant: Grant, scopes: ReadonlySet<string>, resource: string | undefined): void {
  const isAllowed = (scope: string) =>
    isOidcScope(scope)
      ? grant.getOIDCScopeEncountered().split(' ').includes(scope)
      : resource === undefined || grant.getResourceScopeEncountered(resource).split(' ').includes(scope);
  if ([...scopes].every(isAllowed)) return;
  throw new AuthError(
    403,
    'consent_required',
    'The API has its users asked for consent: applications must send them to /authorize.',
  );
}

/** Logs the exchange, where it has a log event of its own beside the login's. */
function recordExchange(
  { events, executions }: Pick<TokenDependencies, 'events' | 'executions'>,
  ctx: KoaContextWithOIDC,
  { userId, ip }: Login,
  { type, clientId, isRecorded }: { type: EventType | undefined; clientId: string; isRecorded: boolean },
): void {
  if (type === undefined) return;
  // A login that is recorded now has these details in its own event.
  const details = isRecorded ? executionDetails(executions.of(ctx)) : {};
  events.record({ type, client_id: clientId, user_id: userId, ip, ...details });
}

/** Stores the grant and issues its tokens, in the token response. */
async function issue(
  ctx: KoaContextWithOIDC,
  { userId, amr, acr, authTime }: Login,
  client: Client,
  issuance: ProvenKeys & {
    grant: Grant;
    scopes: ReadonlySet<string>;
    resource: string | undefined;
  } & Pick<TokenIssuance, 'gty' | 'authorizationDetails'>,
): Promise<void> {
  const { grant, scopes, resource, gty, dPoP, authorizationDetails: rar } = issuance;
  const { provider } = ctx.oidc;
  const grantId = await grant.save();
  ctx.oidc.entity('Grant', grant);
  // Never stored: the engine issues tokens from this shape, the rest of which is assigned below.
  const source = new provider.AuthorizationCode({ accountId: userId, client, grantId } as never);
  Object.assign(source, {
    scope: [...scopes].join(' '),
    authTime,
    ...(resource === undefined ? {} : { resource }),
    amr: [...amr],
    ...(acr === undefined ? {} : { acr }),
    ...(rar === undefined ? {} : { rar }),
  });
  await issueTokenResponse(provider, ctx, source, grant, { gty, dPoP });
}

// Decides on the login of a token request: whether it holds, whether its user is admitted, and what the tenant's
// actions change.

interface TokenLoginDependencies extends Pick<GrantDependencies, 'organizations'> {
  secondFactor: Pick<SecondFactor, 'refusal'>;
  settle: Settlement;
  verifiedUsers: VerifiedUsers;
  loginActions: Pick<LoginActions, 'atToken'>;
}

/** The members of a token request on which the decision depends. */
interface TokenRequest {
  /** The grant type as recorded in the tokens. */
  gty: string;
  /** @see GrantRequest.userAddress */
  userAddress: string | undefined;
  /** The id of the organization that the tokens are for. */
  organization: string | undefined;
  /** @see VendorGrant.isFromPages */
  isFromPages: boolean;
  /** @see GrantedLogin.isRecorded */
  isRecorded: boolean | undefined;
}

/** The same with the application, and the requested API as a resource indicator. */
type ApiTokenRequest = TokenRequest & { clientId: string; resource: string | undefined };

/**
 * Verifies a login and runs the tenant's actions. When an action names the user whom this one was linked to, the
 * login becomes one of that user.
 * @throws AuthError as {@link verifyLogin}.
 */
async function verifyTokenLogin(
  deps: TokenLoginDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  request: ApiTokenRequest & { scopes: ReadonlySet<string> },
): Promise<{ login: Login; user: User }> {
  const user = await verifyMember(deps, ctx, login, request);
  const { clientId, organization, scopes } = request;
  const loginContext = { ...login, user, clientId, organization, scopes: [...scopes] };
  const run = {
    ...loginContext,
    protocol: protocolOf(request.gty),
    isUncounted: request.isRecorded !== true,
  };
  const { lacksFactor, primary, storeMetadata } = await deps.loginActions.atToken(ctx, run);
  if (primary === undefined) {
    if (lacksFactor) throw await missingFactorError(deps, ctx, login, request);
    await storeMetadata();
    return { login, user };
  }
  // That user's login is verified like any other, with the first factor only.
  const { userId, credentialVersion } = primary;
  const amr = methodsOfFirstFactor(login.amr);
  const other = { ...login, userId, credentialVersion, amr, acr: undefined };
  // Our pages asked the first user for a second factor, not this one, so the login does not count as made at the
  // pages.
  const otherUser = await verifyMember(deps, ctx, other, { ...request, isFromPages: false });
  if (lacksFactor) throw await missingFactorError(deps, ctx, other, request);
  await storeMetadata();
  return { login: other, user: otherUser };
}

/**
 * Verifies a login, and makes its user a member of the organization where the connection allows it.
 * @throws AuthError as {@link verifyLogin}.
 */
async function verifyMember(
  deps: TokenLoginDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  request: ApiTokenRequest,
): Promise<User> {
  const user = await verifyLogin(deps, ctx, login, request);
  const { clientId, organization } = request;
  // Before anything is issued: tokens name an organization only for a member.
  const membershipError = await deps.organizations.ensureMembership(login, { clientId, organization });
  if (membershipError !== undefined) throw membershipError;
  deps.verifiedUsers.set(ctx.oidc, user);
  return user;
}

/**
 * Verifies a login.
 * @returns its user.
 * @throws AuthError when the login does not hold any more or its user is not admitted; 403 `mfa_required` when it
 *   lacks a second factor.
 */
async function verifyLogin(
  { settle, secondFactor }: TokenLoginDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  request: ApiTokenRequest,
): Promise<User> {
  const { clientId, resource, userAddress, organization, isFromPages } = request;
  const decision = await settle.decide(login, {
    clientId,
    organization,
    acrValues: [],
    audience: resource === undefined ? undefined : toAudience(resource),
    browser: false,
    isComplete: isFromPages,
    userAddress,
    ctx,
  });
  if (decision.is === 'refused') throw decision.refusal;
  if (decision.is === 'complete') return decision.user;
  throw await missingFactorError({ secondFactor }, ctx, login, request);
}

/** Returns the `protocol` of a login at the token endpoint, as the hosted service names it for actions. */
const protocolOf = (gty: string): string => {
  const name = gty.slice(gty.lastIndexOf(':') + 1).replaceAll('_', '-');
  return name === 'ciba' ? 'oidc-ciba' : `oauth2-${name}`;
};

/**
 * Returns the refusal of a login that lacks a second factor. It contains a token for the MFA API, except in a token
 * exchange.
 */
async function missingFactorError(
  { secondFactor }: Pick<TokenLoginDependencies, 'secondFactor'>,
  ctx: KoaContextWithOIDC,
  login: Login,
  request: ApiTokenRequest,
): Promise<AuthError> {
  const { clientId, resource, gty, organization } = request;
  // The `mfa_token` can enroll factors, so only somebody who has just given the first factor may have it, not
  // everybody who holds a token. Besides, tokens that are issued after it would not name the actor.
  if (exchangeLimits.of(ctx) !== undefined || actorOf(ctx) !== undefined)
    return new AuthError(400, 'invalid_request', 'The subject_token lacks the second factor that is needed.');
  const { scope } = ctx.oidc.params ?? {};
  return secondFactor.refusal(login.userId, clientId, {
    scope: typeof scope === 'string' ? scope : '',
    gty,
    firstFactor: login,
    ...(resource !== undefined && { resource }),
    ...(organization !== undefined && { organization }),
  });
}
