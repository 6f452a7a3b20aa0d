// What an access token for the MFA API may do. It is decided at each use: the token ends with a new password and
// when another token changes the user's factors. A token without a second factor is refused once the user has one.
// docs/understand/decisions/second-factors.md#an-access-token-for-the-mfa-api-is-checked-at-each-use

import type { AuthenticatedLogin, TokenLogin } from '../../engine/admission/second-factor.ts';
import type { ApiToken } from '../../engine/token/api-tokens.ts';
import type { Users } from '../../users/users.ts';
import type { FactorChanges } from './authenticators.ts';

/** What a token may do. */
export interface FactorPermission {
  /** Whether it proves a second factor. Then it may add further factors and remove any. */
  hasSecondFactor: boolean;
}

export interface Elevation {
  /** Returns the id of the last change of a user's factors; empty for none. */
  lastChangeOf(userId: string): Promise<string>;
  /**
   * Returns whether the user's second factors are the same as at the login, except for changes made in its own
   * session.
   */
  isCurrent(login: AuthenticatedLogin): Promise<boolean>;
  /** Returns the claims that {@link permissionOf} needs, for an access token for an API that changes factors. */
  claimsOf(login: TokenLogin): Promise<Record<string, unknown>>;
  /**
   * A token that proves no second factor is only good while its user has none, which the caller has to check.
   * @returns undefined when the token has ended.
   */
  permissionOf(token: ApiToken): Promise<FactorPermission | undefined>;
}

/** Returns the functions that decide what the access tokens of a tenant may do. */
export function createElevation({
  users,
  factorChanges,
}: {
  users: Users;
  factorChanges: FactorChanges;
}): Elevation {
  return {
    lastChangeOf: factorChanges.last,
    isCurrent: async ({ userId, factors, sessionId = '' }) =>
      factors === undefined || factorChanges.isUnchangedByOthers(userId, factors, sessionId),
    claimsOf: async ({ userId, amr, credentialVersion, factors, presence, authTime, sessionId, grant }) => ({
      amr: [...amr],
      presence,
      ...(authTime !== undefined && { auth_time: authTime }),
      ...(sessionId !== undefined && { sid: sessionId }),
      ...(grant !== undefined && { grant }),
      credential_version: credentialVersion,
      // A session proves the second factor that was given when it began, not one added later.
      factors_changed: (amr.includes('mfa') ? factors : undefined) ?? (await factorChanges.last(userId)),
    }),
    permissionOf: async ({ id, userId, claims }) => {
      const { amr, credential_version: version, factors_changed: since } = claims;
      if (typeof since !== 'string' || !(await factorChanges.isUnchangedByOthers(userId, since, id)))
        return undefined;
      if ((await users.credentialVersion(userId)) !== version) return undefined;
      const hasSecondFactor = Array.isArray(amr) && amr.includes('mfa');
      // It began before `gatehouse move in` found that the user has a factor elsewhere.
      const user = hasSecondFactor ? undefined : await users.get(userId);
      if (user !== undefined && (await users.lacksFactor(user))) return undefined;
      return { hasSecondFactor };
    },
  };
}
