// The attributes of a user that an action of `custom-token-exchange` gives: what a new user gets, and what they replace.
import type { ExchangedAttributes } from '../../../capabilities/actions/exchange-methods.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { attributesOf } from '../../../records/database-attributes.ts';
import { databaseOptions } from '../../../records/database-options.ts';
import { normalizeEmail } from '../../../records/email.ts';
import type { UserRecord } from '../../../records/users.ts';
import { usernameRefusal } from '../../../users/signup.ts';
import type { User } from '../../../users/user.ts';

/** Returns the error, 400, for a user that cannot be set as the action asks. */
export const invalid = (description: string) => new AuthError(400, 'invalid_request', description);

/** Returns the addresses of a new user. @throws AuthError 400 for attributes that this connection does not take. */
export function addressesOf(
  connection: Connection,
  { email: address, username, phone_number }: ExchangedAttributes,
) {
  const email = normalizeEmail(address ?? '');
  if (email === undefined) throw invalid('The user needs an e-mail address.');
  // A phone number must be verified at this server; a token's claim is not enough.
  if (phone_number != null) throw invalid('phone_number cannot be set for this connection.');
  if (username == null) return { email };
  const options = databaseOptions(connection);
  if (!attributesOf(options).username.isIdentifier || usernameRefusal(options, username) !== undefined)
    throw invalid('username cannot be set for this connection.');
  return { email, username: username.trim().toLowerCase() };
}

const PROFILE = ['name', 'given_name', 'family_name', 'nickname', 'picture'] as const;

/** Returns the profile that attributes give. @throws AuthError 400 for a picture that is no URI. */
export function profileOf(
  attributes: ExchangedAttributes,
): Partial<Record<(typeof PROFILE)[number], string>> {
  const { picture } = attributes;
  if (picture != null && !/^https?:\/\//i.test(picture)) throw invalid('picture must be a URI.');
  return Object.fromEntries(
    PROFILE.flatMap((one) => (attributes[one] == null ? [] : [[one, attributes[one]]])),
  );
}

/** Returns the changes that replace a user's profile. @throws AuthError 400 if the attributes would change an identifier. */
export function replacement(user: User, attributes: ExchangedAttributes): Partial<UserRecord> {
  const { email, username, phone_number, email_verified, phone_verified } = attributes;
  const identifiers = {
    email: email == null ? undefined : (normalizeEmail(email) ?? email),
    username: username?.trim().toLowerCase(),
    phone_number: phone_number ?? undefined,
    email_verified: email_verified ?? user.email_verified,
    phone_verified: phone_verified ?? user.phone_verified,
  };
  const changedField = (Object.keys(identifiers) as (keyof typeof identifiers)[]).find(
    (one) => identifiers[one] !== user[one],
  );
  if (changedField !== undefined)
    throw invalid(`The user's ${changedField} cannot be changed by a token exchange.`);
  const emptyProfile = Object.fromEntries(PROFILE.map((one) => [one, undefined]));
  return { ...emptyProfile, ...profileOf(attributes) };
}
