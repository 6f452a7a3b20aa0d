// What an access token for the MFA API may do. It is judged at each use by what is so then: it outlives neither a
// new password nor a change of the user's factors by somebody else, and a token that proves no second factor has no
// say where there is one.
import { createHash } from 'node:crypto';
import type { ApiToken } from '../engine/api-tokens.ts';
import type { JudgedLogin } from '../engine/tokens.ts';
import { type Clock, epochSeconds } from '../http/runtime.ts';
import type { Store } from '../store/contract.ts';
import type { Users } from '../users/users.ts';
import type { Authenticators } from './authenticators.ts';

/** How long an access token for the MFA API is good, seconds. */
export const API_TOKEN_SECONDS = 600;

/** What a token may do, and to which factors. */
export interface Right {
  /** Whether it proves a second factor, and so may add further ones and remove any. */
  proved: boolean;
  /** The ids of the user's factors, as they were when it was judged. */
  factors: readonly string[];
}

export interface Elevation {
  /** What a token for the MFA API says of its login: judged by it later. */
  claimsOf(login: JudgedLogin): Promise<Record<string, unknown>>;
  /**
   * What a token may do now. One that proves no second factor may only while its user has none, which the caller
   * looks at.
   * @returns undefined when it is no more good for anything.
   */
  judge(token: ApiToken): Promise<Right | undefined>;
  /** A token outlives the changes that it was used for itself. @param right by which it was used. */
  noteChange(token: ApiToken, right: Right, change: { added: string } | { removed: string }): Promise<void>;
}

/** Judges the tokens of a tenant. */
export function createElevation(deps: {
  store: Store;
  users: Users;
  authenticators: Authenticators;
  clock: Clock;
}): Elevation {
  const { users, authenticators, clock } = deps;
  const changes = deps.store.collection('factorChanges');
  const factorsOf = async (userId: string): Promise<string[]> =>
    (await authenticators.of(userId))
      .filter(({ active, kind }) => active && kind !== 'recovery-code')
      .map(({ id }) => id);
  return {
    claimsOf: async ({ userId, amr, credentialVersion }) => ({
      amr: [...amr],
      credential_version: credentialVersion,
      factors: fingerprint(userId, await factorsOf(userId)),
    }),
    judge: async ({ id, userId, claims }) => {
      const factors = await factorsOf(userId);
      const now = fingerprint(userId, factors);
      if (claims.factors !== now && (await changes.get(id))?.factors !== now) return undefined;
      if ((await users.credentialVersion(userId)) !== claims.credential_version) return undefined;
      const { amr } = claims;
      return { proved: Array.isArray(amr) && amr.includes('mfa'), factors };
    },
    noteChange: async ({ id, userId }, { factors }, change) => {
      // As they were and with this change alone: what somebody else changed meanwhile ends the token.
      const after =
        'added' in change
          ? [...factors, change.added]
          : factors.filter((factor) => factor !== change.removed);
      await changes.put({
        id,
        user_id: userId,
        factors: fingerprint(userId, after),
        expiresAt: epochSeconds(clock) + API_TOKEN_SECONDS,
      });
    },
  };
}

/** Which factors a user has, without saying which. */
function fingerprint(userId: string, factors: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([userId, ...[...factors].sort()]))
    .digest('base64url')
    .slice(0, 22);
}
