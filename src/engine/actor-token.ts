// ID tokens that an application brings for whoever acts for a user (RFC 8693 §2.1, `actor_token`).
import type { JWTPayload } from 'jose';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import { provingIdToken } from './id-token-hint.ts';

/** Whether a token is older than the user's password: one that is set ends what came before. */
export function isBeforeReset({ last_password_reset: reset }: User, { iat }: JWTPayload): boolean {
  return Number(iat) < Date.parse(reset ?? '') / 1000;
}

/**
 * The user of an ID token that an application brings for an actor: a token of any application of the tenant's own.
 * @returns undefined where it does not prove who that is, or where its user is not who acts.
 */
export async function actorOfIdToken(
  deps: Parameters<typeof provingIdToken>[0] & { users: Pick<Users, 'get'> },
  token: string,
): Promise<User | undefined> {
  const read = await provingIdToken(deps, token);
  // Others than the tenant have the tokens of a third party's application.
  if (read === undefined || read.client.is_first_party === false || read.claims.act !== undefined)
    return undefined;
  const user = await deps.users.get(read.userId);
  return user === undefined || user.blocked === true || isBeforeReset(user, read.claims) ? undefined : user;
}
