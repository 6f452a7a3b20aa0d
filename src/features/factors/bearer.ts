// The bearer token of an MFA API request: an MFA token, or an access token for the MFA API.
import type { Context } from 'koa';
import { presentedToken } from '../../engine/binding/proof-of-possession.ts';
import { type ApiToken, type ApiTokenReader, loginOfToken } from '../../engine/token/api-tokens.ts';
import { AuthError } from '../../http/errors.ts';
import type { MFA_SCOPES } from '../../records/users/second-factors.ts';
import type { Presence } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { FactorPermission } from './elevation.ts';
import { requireUser } from './enroll.ts';
import type { FactorDependencies } from './factor.ts';
import { malformed, readMfaToken } from './factors-grants.ts';
import { activeAuthenticators } from './policy.ts';

/** The identifier of the MFA API, which access tokens of users are issued for. */
export const mfaAudience = (issuer: string) => `${issuer}mfa/`;

export interface BearerDependencies extends FactorDependencies {
  issuer: string;
  readApiToken: ApiTokenReader;
}

interface Bearer {
  user: User;
  clientId: string;
  /** The version of the credential that the login was proved with. */
  credentialVersion: number;
  presence: Presence;
  /** Present when the token is an access token for the MFA API: the token, and what it may do now. */
  apiAccess?: { token: ApiToken; permission: FactorPermission };
}

/**
 * @param scope the scope that an access token for the MFA API must have.
 * @throws AuthError 401 when the token is missing, wrong or expired, or of a login that is not enough for a change; 403
 *   `insufficient_scope`.
 */
export async function bearerOf(
  deps: BearerDependencies,
  ctx: Context,
  scope: (typeof MFA_SCOPES)[number],
): Promise<Bearer> {
  const presented = presentedToken(ctx);
  if (presented === undefined) throw new AuthError(401, 'access_denied', 'Unauthorized');
  const { value: token } = presented;
  if (token.split('.').length !== 3) {
    const { userId, clientId, request } = await readMfaToken(deps, token);
    const { credentialVersion, presence } = request.firstFactor;
    return {
      user: await userOf(deps, userId),
      clientId,
      credentialVersion,
      presence,
    };
  }
  const apiToken = await deps.readApiToken(ctx, token, mfaAudience(deps.issuer));
  if (apiToken === undefined) throw new AuthError(401, 'access_denied', 'Unauthorized');
  if (!apiToken.scopes.includes(scope)) {
    throw new AuthError(403, 'insufficient_scope', `Insufficient scope, expected: ${scope}`);
  }
  // It could not confirm what it begins: the MFA grants are refused to it. What protects an account is not for others to remove.
  // docs/understand/decisions/console-account.md#a-third-party-application-acts-at-me-only-where-tenant-and-user-have-both-said-so
  const isChange = scope !== 'read:authenticators';
  if (isChange && (await deps.config.client(apiToken.clientId))?.is_first_party === false)
    throw new AuthError(403, 'unauthorized_client', 'Third-party applications change no authenticators.');
  const { user } = apiToken;
  const permission = await requirePermission(deps, user, apiToken);
  const login = loginOfToken(apiToken);
  // An MFA token is that of a login under way; an access token may be old, or in other hands.
  if (isChange) requireUser(deps, login, 'factor');
  return {
    user,
    clientId: apiToken.clientId,
    credentialVersion: login.credentialVersion,
    presence: login.presence,
    apiAccess: { token: apiToken, permission },
  };
}

/**
 * Returns what an access token for the MFA API may do now.
 * @throws AuthError 401 when it is older than the user's password or factors, or does not prove a second factor
 *   although the user has one.
 */
export async function requirePermission(
  deps: BearerDependencies,
  user: User,
  token: ApiToken,
): Promise<FactorPermission> {
  const permission = await deps.elevation.permissionOf(token);
  const isEnough =
    permission?.hasSecondFactor === true || (await activeAuthenticators(deps, user)).length === 0;
  if (permission === undefined || !isEnough) throw new AuthError(401, 'access_denied', 'Unauthorized');
  return permission;
}

/** @throws AuthError 401 when the user does not exist or is blocked. */
export async function userOf({ users }: BearerDependencies, userId: string): Promise<User> {
  const user = await users.get(userId);
  if (user === undefined || user.blocked === true) throw malformed();
  return user;
}
