// What an access token for the MFA API may do, judged at each use: it ends with a new password and with a change of the
// user's factors by another token; one without a second factor is refused once the user has one.
import type { ApiToken } from '../engine/api-tokens.ts';
import type { JudgedLogin } from '../engine/second-factor.ts';
import type { Users } from '../users/users.ts';
import type { FactorChanges } from './factor-changes.ts';

/** What a token may do. */
export interface Right {
  /** Whether it proves a second factor, and so may add further ones and remove any. */
  proved: boolean;
}

export interface Elevation {
  /** The id of the last change of a user's factors. */
  factorsOf(userId: string): Promise<string>;
  /**
   * Whether the user's second factors are the same as when the login was made, except for changes made in its own
   * session.
   */
  isCurrent(login: JudgedLogin): Promise<boolean>;
  /** The claims of a token for the APIs that change factors, by which {@link judge} decides later. */
  claimsOf(login: JudgedLogin): Promise<Record<string, unknown>>;
  /**
   * What a token may do now. One that proves no second factor may only while its user has none, which the caller
   * looks at.
   * @returns undefined when it is no more good for anything.
   */
  judge(token: ApiToken): Promise<Right | undefined>;
}

/** Judges the tokens of a tenant. */
export function createElevation({
  users,
  factorChanges,
}: {
  users: Users;
  factorChanges: FactorChanges;
}): Elevation {
  return {
    factorsOf: factorChanges.last,
    isCurrent: async ({ userId, factors, sessionId = '' }) =>
      factors === undefined || factorChanges.isOwn(userId, factors, sessionId),
    claimsOf: async ({ userId, amr, credentialVersion, factors, authTime, sessionId, grant }) => ({
      amr: [...amr],
      ...(authTime !== undefined && { auth_time: authTime }),
      ...(sessionId !== undefined && { sid: sessionId }),
      ...(grant !== undefined && { grant }),
      credential_version: credentialVersion,
      // A session proves the second factor that was given when it began.
      factors_changed: (amr.includes('mfa') ? factors : undefined) ?? (await factorChanges.last(userId)),
    }),
    judge: async ({ id, userId, claims }) => {
      const { amr, credential_version: version, factors_changed: since } = claims;
      if (typeof since !== 'string' || !(await factorChanges.isOwn(userId, since, id))) return undefined;
      if ((await users.credentialVersion(userId)) !== version) return undefined;
      return { proved: Array.isArray(amr) && amr.includes('mfa') };
    },
  };
}
