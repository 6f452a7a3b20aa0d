// The common part of the calls for users: their dependencies, the user that a path names, and members of bodies.
import type { AuthError } from '../../../../http/errors.ts';
import type { Connection } from '../../../../records/collections.ts';
import { attributesOf } from '../../../../records/database-attributes.ts';
import type { DatabaseOptions } from '../../../../records/tenant.ts';
import type { UserRecord } from '../../../../records/users.ts';
import type { Store } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Asker } from '../../../../users/asker.ts';
import { type PasswordRefusal, usernameRefusal } from '../../../../users/signup.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import type { CallRequest } from '../../call.ts';
import { apiError } from '../../errors.ts';
import { notFound } from '../../resource.ts';
import { type PatchUserBody, PROFILE_MEMBERS } from './bodies.ts';
import { userView } from './view.ts';

export interface UsersDependencies {
  store: Store;
  users: Users;
  config: Pick<Config, 'connection' | 'connections' | 'settings'>;
  /** Removes a user and everything that belongs to the user. */
  removeUser(userId: string, by?: User): Promise<void>;
  /** Renews expired tokens of a user's upstream providers. */
  renewProviderTokens(userId: string): Promise<void>;
  /** Ends a user's sessions and refresh tokens. */
  endSessions(userId: string, reason: 'account-deactivated' | 'password-changed'): Promise<void>;
  /** Sends the e-mail that verifies a new address, if the tenant sends these. */
  askToVerify(user: User, connection: Connection, clientId: string | undefined, ip: string): Promise<void>;
}

/** The source of a request. */
export type RequestOrigin = Pick<CallRequest, 'ip' | 'userAgent'>;

/** Returns the request as the tenant's own code sees it. */
export function askerOf(method: 'POST' | 'PATCH', { ip, userAgent: user_agent }: RequestOrigin): Asker {
  return { request: { ip, user_agent, method, query: {}, body: {} } };
}

/** The error for a user who does not exist. */
export const noUser = notFound('The user does not exist.', 'inexistent_user');

/** Returns the error for a user whom a path names and who does not exist. A text that is no user ID at all is refused. */
export const noUserNamed = (id: string) =>
  id.includes('|')
    ? noUser()
    : apiError(400, `Object didn't pass validation for format user-id: ${id}`, 'invalid_uri');

/** Returns the user that a path names. @throws AuthError 404, and 400 for what is no user ID */
export async function userOf({ users }: Pick<UsersDependencies, 'users'>, id = ''): Promise<User> {
  const user = await users.get(id);
  if (user === undefined) throw noUserNamed(id);
  return user;
}

/** Returns a user as the API shows it. @param shows further members that the caller may read. */
export async function viewOf(
  { users }: Pick<UsersDependencies, 'users'>,
  user: User,
  shows: { providerTokens?: boolean } = {},
) {
  return userView(user, await users.identitiesOf(user.id), shows);
}

/** Returns the error for a body that is refused. */
export const invalid = (message: string): AuthError => apiError(400, message, 'invalid_body');

/** Returns the error for a password that is refused, with the hosted service's message. */
export function passwordError({ reason }: PasswordRefusal): AuthError {
  const messages: Record<PasswordRefusal['reason'], string> = {
    'weak-password': 'PasswordStrengthError: Password is too weak',
    'common-password': 'PasswordDictionaryError: Password is too common',
    'personal-password': 'PasswordNoUserInfoError: Password contains user information',
    'used-password': 'PasswordHistoryError: Password has previously been used',
  };
  return invalid(messages[reason]);
}

/** Refuses a username that users of a database connection cannot have. @throws AuthError 400 */
export function requireValidUsername(options: DatabaseOptions, username: string): void {
  const { isIdentifier, signUp } = attributesOf(options).username;
  if (!isIdentifier && signUp === 'inactive')
    throw invalid('Cannot set username for connection without requires_username');
  const refusal = usernameRefusal(options, username);
  if (refusal === undefined) return;
  const { min, max } = refusal;
  throw invalid(
    `Payload validation error: 'username: ${min} to ${max} letters, digits and _+-.!#$^\`~@', and no e-mail address or phone number that could log in'.`,
  );
}

/** Returns the members of a profile that a body sets; null removes a member. */
export function profileOf(body: PatchUserBody): Partial<UserRecord> {
  return Object.fromEntries(
    PROFILE_MEMBERS.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name] ?? undefined]])),
  );
}
