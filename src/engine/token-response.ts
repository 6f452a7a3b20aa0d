// The end of a login at the token endpoint: from the authenticated user to the token response.
import type { Client, Grant, KoaContextWithOIDC } from 'oidc-provider';
import { executionDetails } from '../capabilities/actions/actions.ts';
import { AuthError } from '../http/errors.ts';
import type { EventType } from '../records/log-events.ts';
import type { Events } from '../tenant/events.ts';
import type { Login } from '../users/login.ts';
import type { AuthorizationDetail } from './authorization-details.ts';
import { isOidcScope } from './claims.ts';
import type { Commits } from './commit.ts';
import { buildGrant, type GrantDependencies } from './grants.ts';
import { issueTokenResponse } from './internals.ts';
import type { LoginExecutions } from './login-executions.ts';
import type { ProvenKeys } from './proof-of-possession.ts';
import { admittedResource, grantableScopes } from './requested-api.ts';
import type { SecondFactor } from './second-factor.ts';
import { type TokenLoginDependencies, type TokenRequest, verifyTokenLogin } from './token-login.ts';

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
