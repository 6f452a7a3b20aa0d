// Decides whether an authenticated user is admitted. Checked where a login ends (settle.ts) and whenever the engine
// looks a user up, so that no path can skip it.
import { AuthError } from '../../http/errors.ts';
import type { Frozen } from '../../records/record.ts';
import type { UserRecord } from '../../records/users.ts';
import type { Login } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { WRONG_PASSWORD } from '../base/failures.ts';

/**
 * Decides whether a user is admitted.
 * @returns the error to answer when not; undefined when the user is admitted.
 */
export function admissionError(user: Frozen<UserRecord>): AuthError | undefined {
  // SDKs compare "user is blocked".
  if (user.blocked === true) return new AuthError(403, 'unauthorized', 'user is blocked');
  return undefined;
}

/** The members of a login that a change of the user can make invalid. */
type LoginCredential = Pick<Login, 'userId' | 'credentialVersion'>;

/** The user of a login, and the reason when it may not go on. */
export type Admission = { user: User; refusal: undefined } | { user: User | undefined; refusal: AuthError };

/**
 * Decides whether a session or tokens may be made from a login. Refused when the user is not admitted, is deleted,
 * or has a new password since the login. A change of the password ends what is stored at that moment but cannot see
 * a login under way, so this is checked before something is stored and again afterwards, when it can still be
 * removed.
 * @returns `refusal`: `invalid_grant`, in the words of a wrong password, for a login that no longer holds;
 *   `unauthorized` for a user who is not admitted; undefined when the login holds.
 */
export async function admissionOf(users: Users, login: LoginCredential): Promise<Admission> {
  const [user, holds] = await Promise.all([users.get(login.userId), isCredentialCurrent(users, login)]);
  if (user === undefined || !holds)
    return { user, refusal: new AuthError(403, 'invalid_grant', WRONG_PASSWORD) };
  const refusal = admissionError(user);
  return refusal === undefined ? { user, refusal } : { user, refusal };
}

/** Whether the user's credential is still the one that the login was verified with. */
export async function isCredentialCurrent(
  users: Users,
  { userId, credentialVersion }: LoginCredential,
): Promise<boolean> {
  return (await users.credentialVersion(userId)) === credentialVersion;
}

/**
 * Whether a login or session of a connection may answer a request.
 * @param requested the connection that the request names, if it names one.
 */
export function matchesConnection(requested: unknown, connection: string | undefined): boolean {
  return typeof requested !== 'string' || requested === connection;
}
