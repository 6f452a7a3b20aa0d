// Grant types beyond those of oidc-provider: the interface for features, and their registration.

import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { type Client, errors, type Grant, type KoaContextWithOIDC } from 'oidc-provider';
import type { z } from 'zod';
import { executionDetails } from '../../capabilities/actions/actions.ts';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { AuthError } from '../../http/errors.ts';
import type { EventType } from '../../records/base/log-events.ts';
import { asksEachTime } from '../../records/clients/apis.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { type Login, methodsOfFirstFactor } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import { organizationAtToken } from '../admission/admission.ts';
import {
  actorOf,
  type ExchangeLimits,
  exchangeEvents,
  exchangeLimits,
  invalidTokenError,
} from '../admission/exchange-context.ts';
import type { CompletedRequest, SecondFactor } from '../admission/second-factor.ts';
import type { AuthorizationDetail } from '../base/authorization-details.ts';
import type { Commits } from '../base/commit.ts';
import type { EngineFailures } from '../base/failures.ts';
import { issueTokenResponse } from '../base/internals.ts';
import {
  isOidcScope,
  OIDC_SCOPES,
  requestedAudience,
  toAudience,
  toResource,
} from '../base/request-extensions.ts';
import { certificateConfirmation } from '../binding/certificate-binding.ts';
import {
  type Confirmation,
  confirmationOfKeys,
  type ProofOfPossession,
  type ProvenKeys,
  refuseUnbound,
} from '../binding/proof-of-possession.ts';
import type { VerifiedUsers } from '../claims/claims.ts';
import { applicationSettings, refuseNoncompliant } from '../client/applications.ts';
import { applyForwardedAddress } from '../client/engine-client-authentication.ts';
import type { LoginActions, LoginExecutions } from '../login/login-actions.ts';
import type { Settlement } from '../login/settle.ts';
import { buildGrant, type GrantDependencies } from './token-grants.ts';

// The end of a login at the token endpoint: from the authenticated user to the token response.

// Reads the API and the scopes that a token request asks for.

interface ConfigDependency {
  config: Pick<Config, 'resourceServer' | 'settings'>;
}

/**
 * Returns the API of a token request, or else the tenant's default, as a resource indicator.
 * @throws AuthError 403 when there is no such API.
 */
async function requestedResource(
  { config }: ConfigDependency,
  ctx: KoaContextWithOIDC,
): Promise<string | undefined> {
  const requested = requestedAudience(ctx.oidc.params);
  if (requested !== undefined && (await config.resourceServer(requested)) === undefined) {
    throw new AuthError(403, 'access_denied', `Service not found: ${requested}`);
  }
  const audience = requested ?? config.settings().tenant.default_audience;
  return audience === undefined ? undefined : toResource(audience);
}

/** Returns the requested scopes that exist, with `offline_access` only if API and application allow it. */
async function grantableScopes(
  { config }: ConfigDependency,
  ctx: KoaContextWithOIDC,
  resource: string | undefined,
) {
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const known = new Set<string>([...OIDC_SCOPES, ...(api?.scopes.map(({ value }) => value) ?? [])]);
  const scopes = new Set([...ctx.oidc.requestParamScopes].filter((scope) => known.has(scope)));
  const offline =
    ctx.oidc.client?.grantTypeAllowed('refresh_token') === true && api?.allow_offline_access !== false;
  // No refresh token when somebody acts for the user: refreshed tokens would not name the actor.
  const isDelegated = actorOf(ctx) !== undefined || ctx.oidc.params?.actor_token !== undefined;
  if (!offline || isDelegated) scopes.delete('offline_access');
  return scopes;
}

/**
 * Returns the API of a token request ({@link requestedResource}), unless the request is refused for what it asks for,
 * whoever its user is.
 * @param isFromPages whether its user was asked at our pages.
 * @throws AuthError 403 when there is no such API; `unauthorized_client` for an API that requires consent each time,
 *   because at the token endpoint the user cannot be asked, and what {@link refuseThirdParty} throws.
 */
async function admittedResource(
  deps: ConfigDependency,
  ctx: KoaContextWithOIDC,
  isFromPages: boolean,
): Promise<string | undefined> {
  refuseThirdParty(ctx, isFromPages);
  const resource = await requestedResource(deps, ctx);
  const api = resource === undefined ? undefined : await deps.config.resourceServer(toAudience(resource));
  if (isFromPages || !asksEachTime(api)) return resource;
  throw new AuthError(
    403,
    'unauthorized_client',
    'The API has its users asked for consent: applications must send them to /authorize.',
  );
}

/** Refuses a third-party application whose user was not asked for consent. @throws AuthError 403 `unauthorized_client`. */
function refuseThirdParty({ oidc: { client } }: KoaContextWithOIDC, isFromPages: boolean): void {
  if (isFromPages || (client !== undefined && applicationSettings(client).firstParty)) return;
  throw new AuthError(
    403,
    'unauthorized_client',
    'Third-party applications must send the user to /authorize.',
  );
}

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
async function respondWithTokens(
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
  await refuseEndedMeanwhile(ctx, grant);
  recordExchange(deps, ctx, login, { type: request.event, clientId, isRecorded });
}

/**
 * Refuses the tokens of an exchange if the exchanged token has ended since it was read: the new ones would outlive it.
 * @throws AuthError 400 `invalid_request`
 */
async function refuseEndedMeanwhile(ctx: KoaContextWithOIDC, grant: Grant): Promise<void> {
  if ((await exchangeLimits.of(ctx)?.hasEnded()) !== true) return;
  await grant.destroy();
  throw invalidTokenError();
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
  const details = isRecorded ? executionDetails(executions.of(ctx)).details : undefined;
  const act = actorOf(ctx);
  const audience = requestedAudience(ctx.oidc.params);
  events.record({
    type,
    client_id: clientId,
    user_id: userId,
    ip,
    ...((details ?? act) && { details: { ...details, ...(act && { act, audience }) } }),
  });
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

/** A token request of a vendor grant, its client authenticated. */
export interface GrantRequest {
  clientId: string;
  /** The parameters of the grant, as sent. */
  params: Readonly<Record<string, string | undefined>>;
  ip: string;
  /** The user's address; undefined when a confidential application does not send it. */
  userAddress: string | undefined;
  /** The identifier of the browser, if a page of the application made the request. */
  browser?: string | undefined;
  /** The request, for rate limits. */
  ctx: Context;
  /**
   * Returns the keys that the request proves, for a token that the grant makes itself.
   * @param audience the API of the token.
   * @throws errors.OIDCProviderError when application or API demand a key and none is proved.
   */
  confirmationFor(audience: string): Promise<Confirmation>;
}

export interface GrantedLogin {
  login: Login;
  /** An earlier token request that this one completes: tokens are issued for its scopes, API and grant type. */
  completes?: CompletedRequest;
  /** Whether the login was already counted and logged when its session was made. */
  isRecorded?: boolean;
  /** The organization that the login is for, by id or name; it takes precedence over the request's. */
  organization?: string | undefined;
  /** The limits and claims of a token exchange. */
  exchangeLimits?: ExchangeLimits;
  /** Further members of the token response. */
  extra?: Record<string, unknown>;
}

/** The answer of a grant that does not issue tokens of ours, but for example the token of a connected account. */
export interface GrantAnswer {
  /** The token response. */
  answer: Readonly<Record<string, unknown>>;
  userId: string;
  /** The name of the connection that the answer comes from. */
  connection: string;
  /** Further details for the log event. */
  details?: Readonly<Record<string, unknown>>;
}

/** A token request that completes an earlier one: what the tokens are for is known, and its user not yet authenticated. */
export interface BegunGrant {
  completes: CompletedRequest;
  /** Authenticates the user, after the request was admitted. @throws AuthError when the user is not authenticated. */
  authenticate(): Promise<Omit<GrantedLogin, 'completes'>>;
}

/** An earlier request for something else than tokens of a login, which the grant makes itself. */
export interface BegunAnswer {
  completes?: never;
  authenticate(): Promise<GrantAnswer>;
}

/**
 * A grant type beyond those of oidc-provider. The feature that declares it authenticates the user; this folder does
 * everything else. Whatever can refuse the request without knowing its user is asked before the user is
 * authenticated, because authenticating writes: it uses up codes, creates users and confirms authenticators.
 * @template D the dependencies of the feature.
 */
export type GrantDeclaration<D> = GrantTraits &
  (
    | {
        /** @throws AuthError when the user is not authenticated. */
        authenticate: (deps: D, request: GrantRequest) => Promise<GrantedLogin | GrantAnswer>;
        begin?: never;
      }
    | {
        /**
         * For requests that complete earlier ones: reads the earlier one, and at most uses up its code. @throws
         * AuthError when there is none.
         */
        begin: (deps: D, request: GrantRequest) => Promise<BegunGrant | BegunAnswer>;
        authenticate?: never;
      }
  );

interface GrantTraits {
  /**
   * The complete `grant_type`. One that begins with a slash is completed with the tenant's `vendor_host`:
   * `/oauth/grant-type/x` is `http://<vendor_host>/oauth/grant-type/x`.
   */
  grantType: string;
  /** One line, for the OpenAPI document. */
  summary: string;
  /** Its parameters, beside scope, audience and client authentication. */
  parameters: z.ZodObject;
  /** As recorded in the access token's `gty`. */
  gty: string;
  /** Log events of success and failure. */
  events: { success?: EventType; failure: EventType };
  // docs/understand/decisions/tokens.md#third-party-applications-cannot-use-grants-that-authenticate-a-user-at-the-token-endpoint
  /**
   * Whether its logins were made at our pages, which have asked for consent, and for a second factor where one was
   * needed. Other grants are refused to third-party applications.
   */
  isFromPages?: true;
  /** Whether `/co/authenticate` takes its credentials as well, for a login ticket. */
  givesTicket?: true;
}

/** Returns the `grant_type` as clients send it. */
export function grantTypeOf(declaredType: string, vendorHost: string): string {
  return declaredType.startsWith('/') ? `http://${vendorHost}${declaredType}` : declaredType;
}

/** A declared grant type with its dependencies bound. */
export interface VendorGrant {
  /** Contains the tenant's `vendor_host`, so it is read again when that changes. */
  readonly grantType: string;
  /** Names of the parameters it reads, beside scope, audience and client authentication. */
  parameters: string[];
  /** As recorded in the access token's `gty`. */
  gty: string;
  /** Log events of success and failure. */
  events: { success?: EventType; failure: EventType };
  /** @see GrantTraits.isFromPages */
  isFromPages: boolean;
  /** @see GrantTraits.givesTicket */
  givesTicket: boolean;
  /** Whether its requests complete earlier ones. */
  completes: boolean;
  /** Reads the earlier request, if it completes one. */
  begin(request: GrantRequest): Promise<{
    completes?: CompletedRequest;
    /** @throws AuthError when the user is not authenticated. */
    authenticate(): Promise<GrantedLogin | GrantAnswer>;
  }>;
}

export interface VendorGrantDependencies extends TokenDependencies {
  failures: EngineFailures;
  possession: Pick<ProofOfPossession, 'readProofs'>;
  certificates: Pick<ClientCertificates, 'of'>;
}

export function registerVendorGrant(
  deps: VendorGrantDependencies,
  provider: Provider,
  grant: VendorGrant,
): void {
  const parameters = new Set(['scope', 'resource', 'organization', ...grant.parameters]);
  provider.registerGrantType(
    grant.grantType,
    async (ctx) => {
      const userAddress = applyForwardedAddress(ctx, ctx.oidc.client);
      const keys = await deps.possession.readProofs(ctx);
      const request: GrantRequest = {
        clientId: ctx.oidc.client.clientId,
        params: ctx.oidc.params as Record<string, string | undefined>,
        ip: ctx.ip,
        userAddress,
        ctx,
        confirmationFor: (audience) => confirmationFor(deps, ctx, keys, audience),
      };
      try {
        const admit = admission(deps, ctx, grant, keys);
        const granted = await authenticated(deps, ctx, grant, { request, keys, admit });
        if ('answer' in granted) sendGrantAnswer(deps, request, grant, granted);
        else await sendTokens(deps, ctx, grant, { granted, userAddress, keys, admit });
      } catch (thrown) {
        if (!(thrown instanceof AuthError)) throw thrown;
        // oidc-provider only passes on errors of its own. Ours is recorded, and replaces its answer afterwards.
        deps.failures.record(ctx, thrown);
        throw new errors.CustomOIDCProviderError(thrown.error, thrown.error_description, { cause: thrown });
      }
    },
    parameters,
  );
}

/**
 * Checks what a request asks for, whoever its user is: application, organization, API, keys.
 * @param completes the earlier request whose scopes and API it is for.
 * @param idOrName the organization, where it is not the request's parameter.
 * @returns the id of the organization.
 * @throws AuthError or errors.OIDCProviderError when the request is refused.
 */
type Admit = (completes: CompletedRequest | undefined, idOrName?: string) => Promise<string | undefined>;

function admission(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  { isFromPages }: VendorGrant,
  keys: ProvenKeys,
): Admit {
  const { params = {}, client = {} } = ctx.oidc;
  const parameter = typeof params.organization === 'string' ? params.organization : undefined;
  return async (completes, idOrName = parameter) => {
    if (completes !== undefined)
      Object.assign(params, { scope: completes.scope, resource: completes.resource });
    const organization = await organizationAtToken(deps.config, client, idOrName, completes);
    await refuseUnboundRequest(deps, ctx, keys);
    await admittedResource(deps, ctx, isFromPages);
    return organization;
  };
}

// docs/understand/decisions/tokens.md#whatever-can-refuse-a-token-request-is-asked-before-its-user-is-authenticated
/** Authenticates the user of a request, after everything that can refuse it without knowing the user. */
async function authenticated(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  grant: VendorGrant,
  { request, keys, admit }: { request: GrantRequest; keys: ProvenKeys; admit: Admit },
): Promise<GrantedLogin | GrantAnswer> {
  refuseThirdParty(ctx, grant.isFromPages);
  if (grant.completes) refuseWeakRequest(deps, ctx, keys);
  else await admit(undefined);
  const { completes, authenticate } = await grant.begin(request);
  if (completes === undefined) return authenticate();
  const organization = await admit(completes);
  const { clientId } = request;
  const refusal = await deps.settle.refusal(completes.firstFactor, { clientId, organization });
  if (refusal !== undefined) throw refusal;
  return { ...(await authenticate()), completes } as GrantedLogin;
}

async function sendTokens(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  grant: VendorGrant,
  {
    granted: { login, completes, organization: named, isRecorded, exchangeLimits: exchanged, extra },
    admit,
    ...request
  }: { granted: GrantedLogin; admit: Admit } & Pick<TokenIssuance, 'userAddress' | 'keys'>,
): Promise<void> {
  if (exchanged !== undefined) exchangeLimits.set(ctx, exchanged);
  // Whoever asks for the tokens need not be the user, who logged in at our pages elsewhere.
  const presence = grant.isFromPages ? 'absent' : login.presence;
  await respondWithTokens(
    deps,
    ctx,
    { ...login, presence },
    {
      ...request,
      gty: completes?.gty ?? grant.gty,
      event: exchangeEvents.of(ctx)?.success ?? grant.events.success,
      organization: await admit(completes, named),
      isFromPages: grant.isFromPages,
      isRecorded,
      authorizationDetails: completes?.authorizationDetails,
    },
  );
  // Nobody has logged in here. An ID token would say so, perhaps of a session that has ended, and could be
  // exchanged itself.
  if (exchanged !== undefined) delete (ctx.body as { id_token?: string }).id_token;
  if (extra !== undefined) Object.assign(ctx.body as object, extra);
}

function sendGrantAnswer(
  { events }: Pick<VendorGrantDependencies, 'events'>,
  { clientId: client_id, ip, ctx }: GrantRequest,
  { events: { success: successEvent } }: Pick<VendorGrant, 'events'>,
  { answer, userId: user_id, connection, details }: GrantAnswer,
): void {
  ctx.body = answer;
  const type = exchangeEvents.of(ctx)?.success ?? successEvent;
  if (type === undefined) return;
  events.record({ type, client_id, user_id, connection, ip, ...(details && { details }) });
}

/**
 * Refuses a request whose tokens the application's compliance level does not allow, before its code or ticket is
 * used up.
 */
function refuseWeakRequest(deps: VendorGrantDependencies, ctx: KoaContextWithOIDC, keys: ProvenKeys): void {
  const { client } = ctx.oidc;
  if (client === undefined) return;
  const confirmation = certificateConfirmation(deps, ctx, { client, api: undefined });
  const boundTo = { dpop: keys.dPoP !== undefined, mtls: confirmation['x5t#S256'] !== undefined };
  refuseNoncompliant(client, undefined, boundTo);
}

/** Refuses a request whose tokens have to be bound to a key when it proves none. @throws errors.InvalidDpopProof */
async function refuseUnboundRequest(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  keys: ProvenKeys,
): Promise<void> {
  const resource = await requestedResource(deps, ctx);
  await confirmationFor(deps, ctx, keys, resource === undefined ? undefined : toAudience(resource));
}

/** Returns the keys that tokens for an API are bound to. @throws as {@link refuseUnbound}. */
async function confirmationFor(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  keys: ProvenKeys,
  audience: string | undefined,
): Promise<Confirmation> {
  const api = audience === undefined ? undefined : await deps.config.resourceServer(audience);
  const { client } = ctx.oidc;
  if (client === undefined) return {};
  const proved = { ...confirmationOfKeys(keys), ...certificateConfirmation(deps, ctx, { client, api }) };
  refuseUnbound(ctx, client, api, proved);
  return proved;
}
