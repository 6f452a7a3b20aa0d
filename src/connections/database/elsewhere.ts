// Users who are kept in a database elsewhere.
import type { Connection } from '../../records/collections.ts';
import { databaseOptions } from '../../records/database-options.ts';
import type { DatabaseUser } from '../../users/database-user.ts';
import type { MirroredUser } from '../../users/mirrored.ts';

/** A user of a database elsewhere, with what its connection says of writing them down here. */
export function mirroredIn(connection: Connection, user: DatabaseUser): MirroredUser {
  const { set_user_root_attributes, non_persistent_attrs } = databaseOptions(connection);
  return {
    ...user,
    connection: connection.name,
    rootAttributes: set_user_root_attributes ?? 'on_each_login',
    nonPersistent: non_persistent_attrs ?? [],
  };
}
