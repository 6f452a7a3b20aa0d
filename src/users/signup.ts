// Signing a user up in a database connection: by the API and at the hosted page alike.
import type { Connection } from '../records/collections.ts';
import { strategyRecord } from '../records/connections.ts';
import { databaseOptions, takesSignUps } from '../records/database-options.ts';
import { normalizeEmail } from '../records/email.ts';
import type { AddressKind } from '../records/identities.ts';
import type { DatabaseOptions } from '../records/tenant.ts';
import type { Asker } from './asker.ts';
import type { NewDatabaseUser } from './create.ts';
import type { Identity } from './identities.ts';
import {
  containsPersonalInfo,
  isCommon,
  judgeStrength,
  type PersonalInfo,
  type PolicyVerdict,
} from './password-policy.ts';
import type { User } from './user.ts';
import type { Users } from './users.ts';

interface SignUp extends Omit<NewDatabaseUser, 'connection'> {
  connection: Connection;
  asker: Asker;
}

/** Why there is no new user. */
export type SignUpRefusal =
  | { reason: 'signup-disabled' }
  | { reason: 'invalid-email' }
  | { reason: 'invalid-username'; min: number; max: number }
  | { reason: 'missing-username' }
  | { reason: 'unexpected-username' }
  | { reason: 'weak-password'; verdict: PolicyVerdict }
  | { reason: 'common-password' }
  | { reason: 'personal-password' }
  | { reason: 'taken'; key: AddressKind };

const USERNAME = /^[\p{L}\p{Nd}_+\-.!#$^`~@']+$/u;

/**
 * Signs a user up.
 * @returns the user, or why not; a taken address is found no sooner than a free one.
 * @throws RegistrationRefused
 */
export async function signUp(
  users: Users,
  request: SignUp,
): Promise<{ user: User; identity: Identity } | SignUpRefusal> {
  // Whose passwords are kept elsewhere has no users who sign up here.
  if (strategyRecord(request.connection.strategy)?.isDatabase !== true || !takesSignUps(request.connection))
    return { reason: 'signup-disabled' };
  const options = databaseOptions(request.connection);
  const refusal =
    addressRefusal(options, request) ?? passwordRefusal(options, request.password, personalOf(request));
  if (refusal !== undefined) return refusal;
  const created = await users.create({ ...request, connection: request.connection.name });
  return 'user' in created ? created : { reason: 'taken', key: created.taken };
}

/** What a sign-up says of somebody. */
const personalOf = ({ email, username, profile }: SignUp) => ({ email, username, ...profile });

/** Why somebody may not sign up in a database connection without a password; undefined when they may. */
export function signUpRefusal(
  connection: Connection,
  addresses: Pick<SignUp, 'email' | 'username'>,
): SignUpRefusal | undefined {
  if (!takesSignUps(connection)) return { reason: 'signup-disabled' };
  return addressRefusal(databaseOptions(connection), addresses);
}

function addressRefusal(
  options: DatabaseOptions,
  { email, username }: Pick<SignUp, 'email' | 'username'>,
): SignUpRefusal | undefined {
  if (normalizeEmail(email) === undefined) return { reason: 'invalid-email' };
  return usernameRefusal(options, username);
}

function usernameRefusal(options: DatabaseOptions, username: string | undefined): SignUpRefusal | undefined {
  if (!options.requires_username)
    return username === undefined ? undefined : { reason: 'unexpected-username' };
  if (username === undefined || username === '') return { reason: 'missing-username' };
  const { min, max } = usernameLength(options);
  const length = [...username.trim()].length;
  // An address as username would answer to somebody else's e-mail login.
  const valid =
    length >= min &&
    length <= max &&
    USERNAME.test(username.trim()) &&
    normalizeEmail(username) === undefined;
  return valid ? undefined : { reason: 'invalid-username', min, max };
}

/** How long a username of a connection may be, in characters. */
export function usernameLength({ validation }: DatabaseOptions): { min: number; max: number } {
  return { min: validation?.username?.min ?? 1, max: validation?.username?.max ?? 15 };
}

/** What is wrong with a password, for a user of whom this much is known; nothing when it may be set. */
export function passwordRefusal(
  options: DatabaseOptions,
  password: string,
  user: PersonalInfo,
): SignUpRefusal | undefined {
  const verdict = judgeStrength(options, password);
  if (!verdict.verified) return { reason: 'weak-password', verdict };
  if (isCommon(options, password)) return { reason: 'common-password' };
  if (containsPersonalInfo(options, password, user)) return { reason: 'personal-password' };
  return undefined;
}
