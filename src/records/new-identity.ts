// The identity of a new user in a database connection.

import { normalizeEmail, normalizePhone } from './base/email.ts';
import type { Connection } from './collections.ts';
import { DATABASE, STRATEGIES } from './connections/connections.ts';
import { uniqueIn } from './connections/database-attributes.ts';
import type { AddressKind } from './connections/identities.ts';
import { databaseOptions } from './database-options.ts';

type Addresses = Partial<Record<AddressKind, string>>;

/** Returns the identifiers of a new user, normalized; those that are not given are left out. */
export function addressesOfNew({
  email,
  username,
  phone_number: phone,
}: Partial<Record<AddressKind, string | null | undefined>>) {
  return {
    ...(email != null && { email: normalizeEmail(email) ?? email }),
    // docs/understand/decisions/users-linking.md#a-username-is-stored-and-looked-up-in-lower-case
    ...(username != null && { username: username.trim().toLowerCase() }),
    ...(phone != null && { phone_number: normalizePhone(phone) ?? phone }),
  };
}

export const identityOfNew = (connection: Connection, typed: Parameters<typeof addressesOfNew>[0]) => ({
  ...databaseIdentity(connection.name, typed, uniqueIn(databaseOptions(connection))),
  connectionId: connection.id,
});

/** @param connection its name. @param unique the kinds of identifiers that must be unique. */
export function databaseIdentity(
  connection: string,
  typed: Parameters<typeof addressesOfNew>[0],
  unique: readonly AddressKind[] = STRATEGIES[DATABASE].unique,
): { connection: string; provider: string; addresses: Addresses; unique: readonly AddressKind[] } {
  return { connection, provider: DATABASE, addresses: addressesOfNew(typed), unique };
}
