// Sign-up in a database connection, by the API and on the hosted page.

import { normalizeEmail, normalizePhone } from '../records/base/email.ts';
import type { Connection } from '../records/collections.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import {
  attributesOf,
  identifiersOf,
  readsAsAddress,
  usernameLength,
} from '../records/connections/database-attributes.ts';
import { ADDRESS_KINDS, type AddressKind } from '../records/connections/identities.ts';
import { isUsername } from '../records/connections/usernames.ts';
import { databaseOptions, passwordUse, takesSignUps } from '../records/database-options.ts';
import { identityOfNew } from '../records/new-identity.ts';
import type { DatabaseOptions } from '../records/tenant/tenant.ts';
import type { Asker } from './asker.ts';
import type { Identity } from './changes.ts';
import type { Profile } from './create.ts';
import {
  checkStrength,
  containsPersonalInfo,
  isCommon,
  type PersonalInfo,
  type PolicyVerdict,
  passwordPolicy,
} from './password-policy.ts';
import type { User } from './user.ts';
import type { Users } from './users.ts';

/** The addresses of a sign-up, as typed. */
export type TypedAddresses = Partial<Record<AddressKind, string | undefined>>;

interface SignUp extends TypedAddresses {
  connection: Connection;
  profile?: Profile | undefined;
  /** Undefined for a user who logs in without a password. */
  password?: string | undefined;
  asker: Asker;
}

/** Why a sign-up is refused. */
export type SignUpRefusal =
  | { reason: 'signup-disabled' }
  | { reason: 'invalid-email' }
  | { reason: 'invalid-phone' }
  | { reason: 'invalid-username'; min: number; max: number }
  | { reason: 'missing-address'; kind: AddressKind }
  | { reason: 'unexpected-address'; kind: AddressKind }
  | { reason: 'missing-password' }
  | WeakPassword
  | { reason: 'taken'; key: AddressKind };

/** Why a password is refused: for everybody, or for a user with this profile (`personal-password`). */
type WeakPassword =
  | { reason: 'weak-password'; verdict: PolicyVerdict }
  | { reason: 'common-password' }
  | { reason: 'personal-password' };

// docs/understand/decisions/users-linking.md#signing-up-with-a-taken-address-gives-invalid_signup
/**
 * A taken address takes as long as a free one.
 * @returns the user, or the refusal.
 * @throws RegistrationRefused
 */
export async function signUp(
  users: Users,
  request: SignUp,
): Promise<{ user: User; identity: Identity } | SignUpRefusal> {
  const refusal = signUpFault(request);
  if (refusal !== undefined) return refusal;
  const { connection, profile, password, asker } = request;
  const identity = identityOfNew(connection, request);
  const created = await users.create({ identity, profile, password, asker });
  return 'user' in created ? created : { reason: 'taken', key: created.taken };
}

/** Returns why a sign-up is refused; undefined if it is not. Does not check whether an address is taken. */
export function signUpFault(request: Omit<SignUp, 'asker'>): SignUpRefusal | undefined {
  const { connection, password } = request;
  // Users of a directory are managed there; they cannot sign up here.
  if (strategyRecord(connection.strategy)?.isDatabase !== true || !takesSignUps(connection))
    return { reason: 'signup-disabled' };
  const options = databaseOptions(connection);
  const { signsUp, isOptional } = passwordUse(connection);
  if (password !== undefined && !signsUp) return { reason: 'signup-disabled' };
  const addresses = addressRefusal(options, request);
  if (addresses !== undefined || (password === undefined && isOptional)) return addresses;
  if (password === undefined) return { reason: 'missing-password' };
  return passwordRefusal(options, password, personalOf(request));
}

/** Returns what a sign-up says about its user, for the rule against personal data in passwords. */
const personalOf = ({ email, username, phone_number, profile }: Omit<SignUp, 'asker'>) => ({
  email,
  username,
  phone_number,
  ...profile,
});

/** Returns why a sign-up without a password is refused in a database connection; undefined if it is not. */
export function signUpRefusal(connection: Connection, typed: TypedAddresses): SignUpRefusal | undefined {
  if (!takesSignUps(connection)) return { reason: 'signup-disabled' };
  return addressRefusal(databaseOptions(connection), typed);
}

function addressRefusal(options: DatabaseOptions, typed: TypedAddresses): SignUpRefusal | undefined {
  const attributes = attributesOf(options);
  const isPresent = (kind: AddressKind) => typed[kind] !== undefined && typed[kind] !== '';
  const isRequiredKind = (kind: AddressKind) =>
    attributes[kind].isRequired || attributes[kind].signUp === 'required';
  // Without any identifier the user could never log in again.
  const names = identifiersOf(options);
  const missingIdentifier = names.some(isPresent) ? undefined : names[0];
  const missing = ADDRESS_KINDS.find((kind) => isRequiredKind(kind) && !isPresent(kind)) ?? missingIdentifier;
  if (missing !== undefined) return { reason: 'missing-address', kind: missing };
  const unexpected = ADDRESS_KINDS.find((kind) => isPresent(kind) && attributes[kind].signUp === 'inactive');
  if (unexpected !== undefined) return { reason: 'unexpected-address', kind: unexpected };
  const { email, phone_number: phone, username } = typed;
  if (email !== undefined && normalizeEmail(email) === undefined) return { reason: 'invalid-email' };
  if (phone !== undefined && normalizePhone(phone) === undefined) return { reason: 'invalid-phone' };
  return username === undefined ? undefined : usernameRefusal(options, username);
}

/** Returns the refusal of an invalid username; undefined if it is valid. */
export function usernameRefusal(
  options: DatabaseOptions,
  username: string,
): Extract<SignUpRefusal, { reason: 'invalid-username' }> | undefined {
  const { min, max } = usernameLength(options);
  const length = [...username.trim()].length;
  // A username in the form of an address would be found by a login of the owner of that address.
  const valid =
    length >= min &&
    length <= max &&
    isUsername(username.trim()) &&
    !readsAsAddress(options, username.trim());
  return valid ? undefined : { reason: 'invalid-username', min, max };
}

/** Returns the refusal of a password; undefined if it may be set. @param user what is known of the user. */
export function passwordRefusal(
  options: DatabaseOptions,
  password: string,
  user: PersonalInfo,
): WeakPassword | undefined {
  const verdict = checkStrength(options, password);
  if (!verdict.verified) return { reason: 'weak-password', verdict };
  if (isCommon(options, password)) return { reason: 'common-password' };
  if (containsPersonalInfo(options, password, user)) return { reason: 'personal-password' };
  return undefined;
}

/** Why the new password of an existing user is refused. */
export type PasswordRefusal = WeakPassword | { reason: 'used-password' };

/**
 * Returns the refusal of an existing user's new password; undefined if it may be set.
 * @param home as for {@link Users.isUsedBefore}.
 */
export async function newPasswordRefusal(
  users: Pick<Users, 'isUsedBefore'>,
  options: DatabaseOptions,
  password: string,
  { user, home }: { user: PersonalInfo; home: string },
): Promise<PasswordRefusal | undefined> {
  const refusal = passwordRefusal(options, password, user);
  const { history } = passwordPolicy(options);
  if (refusal !== undefined || history === 0) return refusal;
  return (await users.isUsedBefore(home, password, history)) ? { reason: 'used-password' } : undefined;
}
