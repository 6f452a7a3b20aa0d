// The authentication method that users of a connection log in with first.
import { firstMethodOf } from '../../records/first-methods.ts';
import type { Config } from '../../tenant/config.ts';

/** Returns the first authentication method of a connection, by its name; undefined when the connection no longer exists. */
export async function firstMethod(config: Config, connection: string): Promise<string | undefined> {
  const found = await config.connection(connection);
  return found && firstMethodOf(found.strategy);
}
