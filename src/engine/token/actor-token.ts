// Verifies ID tokens of actors (RFC 8693 §2.1, `actor_token`).
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { IdTokenReaders } from './sent-id-tokens.ts';

/**
 * Returns the actor that an ID token identifies. It may be issued to any first-party application of the tenant.
 * @returns undefined when the token is not valid, its user is blocked, or it names an actor itself.
 */
export async function actorOfIdToken(
  deps: Pick<IdTokenReaders, 'readIdTokenSubject'> & { users: Pick<Users, 'get'> },
  token: string,
): Promise<User | undefined> {
  const subject = await deps.readIdTokenSubject(token);
  // ID tokens of third-party applications are in hands outside the tenant.
  if (subject === undefined || subject.client.is_first_party === false || subject.claims.act !== undefined)
    return undefined;
  const user = await deps.users.get(subject.user.id);
  return user === undefined || user.blocked === true ? undefined : user;
}
