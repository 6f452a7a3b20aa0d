// Links users of a custom database to the user records here.

import type { Connection } from '../../../../records/collections.ts';
import { rootAttributesOf } from '../../../../records/connections/upstream.ts';
import { customDatabase, type DatabaseMode, databaseOptions } from '../../../../records/database-options.ts';
import type { Config } from '../../../../tenant/config.ts';
import { expectedConnection } from '../../../../users/connection-check.ts';
import type { DatabaseUser } from '../../../../users/database-user.ts';
import type { MirroredUser } from '../../../../users/mirrored.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import type { DatabaseRequest } from './custom-run.ts';
import type { CustomDatabases } from './database-custom.ts';

export interface CustomLookupDependencies {
  users: Users;
  customDatabases: CustomDatabases;
}

/** Returns a connection with how it uses its custom database; undefined if it has none. */
export async function customDatabaseOf(
  { customDatabases }: Pick<CustomLookupDependencies, 'customDatabases'>,
  connection: Connection | undefined,
): Promise<{ connection: Connection; mode: DatabaseMode } | undefined> {
  const mode = connection && (await customDatabases.modeOf(connection));
  return connection === undefined || mode === undefined ? undefined : { connection, mode };
}

export function mirroredIn(connection: Connection, user: DatabaseUser): MirroredUser {
  return {
    ...user,
    ...expectedConnection(connection),
    rootAttributes: rootAttributesOf(connection),
    nonPersistent: databaseOptions(connection).non_persistent_attrs ?? [],
  };
}

/**
 * Finds a user in a custom database and creates the record of them here, so that they can set a new password.
 * @returns undefined if there is no such user, or their id or address belongs to another user here.
 * @throws AuthError 503 if the database cannot be asked.
 */
export async function findInCustomDatabase(
  { users, customDatabases }: CustomLookupDependencies,
  request: DatabaseRequest,
): Promise<User | undefined> {
  const { connection } = request;
  const mode = await customDatabases.modeOf(connection);
  const databaseUser = mode && (await customDatabases.find(request));
  if (databaseUser === undefined) return undefined;
  if (databaseUser.refusal !== undefined) {
    await customDatabases.recordRefusal(request, 'get_user', databaseUser.refusal);
    return undefined;
  }
  const result =
    mode === 'moves'
      ? await users.move({ ...databaseUser, ...expectedConnection(connection) })
      : await users.mirror({ ...mirroredIn(connection, databaseUser), isBeforeLogin: true });
  if (result === undefined)
    await customDatabases.recordRefusal(request, 'get_user', conflictReason(databaseUser));
  return result?.user;
}

/** Returns the reason recorded for a user who is not accepted because of a conflict with a user here. */
export function conflictReason({ upstreamId }: DatabaseUser): string {
  return `the id ${upstreamId} or its address is another user's`;
}

export interface CustomVerificationDependencies {
  users: Users;
  config: Config;
  customDatabases: CustomDatabases;
}

/**
 * Marks an address as verified in the custom databases of a user's identities, where they have a `verify` script.
 * @throws AuthError 503 if a script failed.
 */
export async function verifyInCustomDatabase(
  { users, config, customDatabases }: CustomVerificationDependencies,
  userId: string,
  email: string,
): Promise<void> {
  for (const identity of await users.identitiesOf(userId)) {
    const connection = identity.email === email ? await config.connection(identity.connection) : undefined;
    if (connection === undefined || customDatabase(connection) !== 'elsewhere') continue;
    await customDatabases.change({ connection, identifier: email }, 'verify', [email]);
  }
}
