// What the calls of users share: what they are given, the user of a path, a body's members as they are kept.
import type { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { attributesOf } from '../../../records/database-attributes.ts';
import type { DatabaseOptions } from '../../../records/tenant.ts';
import type { UserRecord } from '../../../records/users.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Asker } from '../../../users/asker.ts';
import { type PasswordRefusal, usernameRefusal } from '../../../users/signup.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import type { CallRequest } from '../../call.ts';
import { apiError } from '../../errors.ts';
import { notFound } from '../../resource.ts';
import { type PatchUserBody, PROFILE_MEMBERS } from './bodies.ts';
import { userView } from './view.ts';

export interface UsersDependencies {
  store: Store;
  users: Users;
  config: Pick<Config, 'connection' | 'connections'>;
  /** Removes a user with all that is theirs. */
  removeUser(userId: string): Promise<void>;
  /** Renews what has ended of the tokens that a user's upstream providers gave. */
  renewProviderTokens(userId: string): Promise<void>;
  /** Ends a user's sessions and refresh tokens. */
  endSessions(userId: string, reason: 'account-deactivated' | 'password-changed'): Promise<void>;
  /** Sends the mail that verifies a new address, where the tenant sends one. */
  askToVerify(user: User, connection: Connection, clientId: string | undefined, ip: string): Promise<void>;
}

/** Where a request came from. */
export type RequestFrom = Pick<CallRequest, 'ip' | 'userAgent'>;

/** Who asks, for the tenant's own code. */
export function askerOf(method: 'POST' | 'PATCH', { ip, userAgent: user_agent }: RequestFrom): Asker {
  return { request: { ip, user_agent, method, query: {}, body: {} } };
}

/** The answer where there is no such user. */
export const noUser = notFound('The user does not exist.', 'inexistent_user');

/** The user of a path. @throws AuthError 404 */
export async function userOf({ users }: Pick<UsersDependencies, 'users'>, id = ''): Promise<User> {
  const user = await users.get(id);
  if (user === undefined) throw noUser();
  return user;
}

/** A user as they are answered. @param shows what the caller may be shown beside. */
export async function viewOf(
  { users }: Pick<UsersDependencies, 'users'>,
  user: User,
  shows: { providerTokens?: boolean } = {},
) {
  return userView(user, await users.identitiesOf(user.id), shows);
}

/** The answer to a body that is refused. */
export const invalid = (message: string): AuthError => apiError(400, message, 'invalid_body');

/** The words of the hosted service for a password that is refused. */
export function passwordError({ reason }: PasswordRefusal): AuthError {
  const words: Record<PasswordRefusal['reason'], string> = {
    'weak-password': 'PasswordStrengthError: Password is too weak',
    'common-password': 'PasswordDictionaryError: Password is too common',
    'personal-password': 'PasswordNoUserInfoError: Password contains user information',
    'used-password': 'PasswordHistoryError: Password has previously been used',
  };
  return invalid(words[reason]);
}

/** @throws AuthError 400 for a username that users of a database connection cannot have. */
export function judgeUsername(options: DatabaseOptions, username: string): void {
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

/** The members of a profile that a body sets; null removes one. */
export function profileOf(body: PatchUserBody): Partial<UserRecord> {
  return Object.fromEntries(
    PROFILE_MEMBERS.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name] ?? undefined]])),
  );
}
