import { databaseIdentity } from '../../src/records/new-identity.ts';
import type { Users } from '../../src/users/users.ts';

type NewUser = Parameters<Users['create']>[0];

/** A new user of a database, as `Users.create` takes one. @param user their addresses, and what else is known of them. */
export function databaseUser({
  connection,
  email,
  username,
  phone_number,
  ...rest
}: Omit<NewUser, 'identity'> & Parameters<typeof databaseIdentity>[1] & { connection: string }): NewUser {
  return { identity: databaseIdentity(connection, { email, username, phone_number }), ...rest };
}
