// Whether a user who has proved who they are may come in. Asked where a login ends (settle.ts) and whenever the
// engine looks a user up, so that no path can skip it.
import { AuthError } from '../http/errors.ts';
import type { Frozen } from '../records/record.ts';
import type { UserRecord } from '../records/users.ts';
import type { Login } from '../users/login.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import { WRONG_PASSWORD } from './failures.ts';

/**
 * Decides on a user's admission.
 * @returns why not, as the error to answer; undefined when the user may come in.
 */
export function admit(user: Frozen<UserRecord>): AuthError | undefined {
  // SDKs compare "user is blocked".
  if (user.blocked === true) return new AuthError(403, 'unauthorized', 'user is blocked');
  return undefined;
}

/** What of a login may change while it is under way. */
type Overtakable = Pick<Login, 'userId' | 'credentialVersion'>;

/** The user of a login, or why it may not go on. */
type Admission = { user: User; refusal: undefined } | { user: User | undefined; refusal: AuthError };

/**
 * Whether anything may be made of a login: not when its user may not come in, is gone, or has a new password since it
 * was proved. A change of password ends what is stored when it happens; what a login under way stores after that,
 * only the login itself can see. So this is asked before something is stored, and again after, when what was
 * stored can be taken back.
 * @returns `refusal`: `invalid_grant`, in the words of a wrong password, for a login that no longer holds;
 *   `unauthorized` for a user who may not come in; undefined when all is well.
 */
export async function admissionOf(users: Users, login: Overtakable): Promise<Admission> {
  const [user, holds] = await Promise.all([users.get(login.userId), isCurrent(users, login)]);
  if (user === undefined || !holds)
    return { user, refusal: new AuthError(403, 'invalid_grant', WRONG_PASSWORD) };
  const refusal = admit(user);
  return refusal === undefined ? { user, refusal } : { user, refusal };
}

/** Whether the user's credential is still the one that a login was proved by. */
export async function isCurrent(users: Users, { userId, credentialVersion }: Overtakable): Promise<boolean> {
  return (await users.credentialVersion(userId)) === credentialVersion;
}

/** Whether a login, or session, that came by a connection may answer a request that names one. */
export function isByConnection(named: unknown, connection: string | undefined): boolean {
  return typeof named !== 'string' || named === connection;
}
