// Users who are kept in a database elsewhere.
import type { Connection } from '../../records/collections.ts';
import { customDatabase, databaseOptions } from '../../records/database-options.ts';
import { rootAttributesOf } from '../../records/upstream.ts';
import type { Config } from '../../tenant/config.ts';
import type { DatabaseUser } from '../../users/database-user.ts';
import type { MirroredUser } from '../../users/mirrored.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { Asked, CustomDatabases } from './custom.ts';

export interface FromElsewhereDependencies {
  users: Users;
  customDatabases: CustomDatabases;
}

/** A user of a database elsewhere, with what its connection says of writing them down here. */
export function mirroredIn(connection: Connection, user: DatabaseUser): MirroredUser {
  return {
    ...user,
    connection: connection.name,
    rootAttributes: rootAttributesOf(connection),
    nonPersistent: databaseOptions(connection).non_persistent_attrs ?? [],
  };
}

/**
 * Makes one of ours of the user whom a database elsewhere has with an address, and nobody knows here yet: they can then be
 * given a new password.
 * @returns undefined where there is none. @throws AuthError 503 where the database cannot be asked.
 */
export async function fromElsewhere(
  { users, customDatabases }: FromElsewhereDependencies,
  asked: Asked,
): Promise<User | undefined> {
  const { connection } = asked;
  const mode = customDatabase(connection);
  const there = mode && (await customDatabases.find(asked));
  if (there === undefined) return undefined;
  const made =
    mode === 'moves'
      ? await users.move({ ...there, connection: connection.name })
      : await users.mirror({ ...mirroredIn(connection, there), isBeforeLogin: true });
  if (made === undefined) customDatabases.refused(asked, 'get_user', foreignId(there));
  return made?.user;
}

/** Why somebody is not taken for a user of ours. */
export function foreignId({ upstreamId }: DatabaseUser): string {
  return `the id ${upstreamId} or its address is another user's`;
}

export interface VerifyElsewhereDependencies {
  users: Users;
  config: Config;
  customDatabases: CustomDatabases;
}

/**
 * Tells the database elsewhere where a user is kept that their address is verified, where it has a script for that.
 * @throws AuthError 503 where the script failed.
 */
export async function verifyElsewhere(
  { users, config, customDatabases }: VerifyElsewhereDependencies,
  userId: string,
  email: string,
): Promise<void> {
  for (const identity of await users.identitiesOf(userId)) {
    const connection = identity.email === email ? await config.connection(identity.connection) : undefined;
    if (connection === undefined || customDatabase(connection) !== 'elsewhere') continue;
    await customDatabases.change({ connection, identifier: email }, 'verify', [email]);
  }
}
