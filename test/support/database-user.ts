import { databaseIdentity } from '../../src/records/new-identity.ts';
import type { Users } from '../../src/users/users.ts';

type NewUser = Parameters<Users['create']>[0];

/** Returns a new user of a database connection, as `Users.create` takes it. @param user the addresses and other properties. */
export function databaseUser({
  connection,
  email,
  username,
  phone_number,
  ...rest
}: Omit<NewUser, 'identity'> & Parameters<typeof databaseIdentity>[1] & { connection: string }): NewUser {
  return { identity: databaseIdentity(connection, { email, username, phone_number }), ...rest };
}
