// The options of a database connection.
import type { Connection } from './collections.ts';
import { databaseOptionsSchema } from './connections.ts';
import type { DatabaseOptions } from './tenant.ts';

/** The options of a database connection, with what is not set filled in. */
export function databaseOptions(connection: Connection): DatabaseOptions {
  return databaseOptionsSchema.parse(connection.options);
}
