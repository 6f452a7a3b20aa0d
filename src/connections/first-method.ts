// The first authentication method of a connection's users.
import { firstMethodOf } from '../records/first-methods.ts';
import type { Config } from '../tenant/config.ts';

/** @returns undefined for a connection that is not there any more. @see firstMethodOf */
export async function firstMethod(config: Config, connection: string): Promise<string | undefined> {
  const found = await config.connection(connection);
  return found && firstMethodOf(found.strategy);
}
