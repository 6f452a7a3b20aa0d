// Verifies ID tokens of actors (RFC 8693 §2.1, `actor_token`).
import type { JWTPayload } from 'jose';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import { verifyIdTokenProof } from './id-token-hint.ts';

/** Whether a token was issued before the user's password was last set, which ends such tokens. */
export function isBeforeReset({ last_password_reset: reset }: User, { iat }: JWTPayload): boolean {
  return Number(iat) < Date.parse(reset ?? '') / 1000;
}

/**
 * Returns the actor that an ID token identifies. It may be issued to any first-party application of the tenant.
 * @returns undefined when the token is not valid, its user is blocked, or it names an actor itself.
 */
export async function actorOfIdToken(
  deps: Parameters<typeof verifyIdTokenProof>[0] & { users: Pick<Users, 'get'> },
  token: string,
): Promise<User | undefined> {
  const hint = await verifyIdTokenProof(deps, token);
  // ID tokens of third-party applications are in hands outside the tenant.
  if (hint === undefined || hint.client.is_first_party === false || hint.claims.act !== undefined)
    return undefined;
  const user = await deps.users.get(hint.userId);
  return user === undefined || user.blocked === true || isBeforeReset(user, hint.claims) ? undefined : user;
}
