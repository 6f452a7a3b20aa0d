// Decides on the login of a token request: whether it holds, whether its user is admitted, and what the tenant's
// actions change.
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../http/errors.ts';
import { type Login, methodsOfFirstFactor } from '../users/login.ts';
import type { User } from '../users/user.ts';
import { toAudience } from './audience.ts';
import type { VerifiedUsers } from './claims.ts';
import { actorOf, exchangeLimitsOf } from './exchange-context.ts';
import type { GrantDependencies } from './grants.ts';
import type { LoginActions } from './login-actions.ts';
import type { SecondFactor } from './second-factor.ts';
import type { Settlement } from './settle.ts';

export interface TokenLoginDependencies extends Pick<GrantDependencies, 'organizations'> {
  secondFactor: Pick<SecondFactor, 'refusal'>;
  settle: Settlement;
  verifiedUsers: VerifiedUsers;
  loginActions: Pick<LoginActions, 'atToken'>;
}

/** The members of a token request on which the decision depends. */
export interface TokenRequest {
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
export async function verifyTokenLogin(
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
  if (exchangeLimitsOf(ctx) !== undefined || actorOf(ctx) !== undefined)
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
