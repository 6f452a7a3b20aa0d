// Which database connection a request is about.
import { AuthError } from '../http/errors.ts';
import type { Connection } from '../records/collections.ts';
import type { Config } from './config.ts';

/**
 * The database connection that a login of an application goes to: the one named; else the tenant's default
 * directory where the application has it; else the application's first by name.
 * @throws AuthError 400 `invalid_request` when it does not exist or is not the application's.
 */
export async function databaseFor(config: Config, clientId: string, name?: string): Promise<Connection> {
  const found = await findDatabase(config, clientId, name);
  if (found !== undefined) return found;
  throw new AuthError(
    400,
    'invalid_request',
    'The connection was not found or is not enabled for this application.',
  );
}

/** The same. @returns undefined when it does not exist or is not the application's. */
export async function findDatabase(
  config: Config,
  clientId: string,
  name?: string,
): Promise<Connection | undefined> {
  const enabled = (await config.connectionsOf(clientId)).filter(({ strategy }) => strategy === 'auth0');
  const { default_directory: preferred } = config.settings().tenant;
  if (name !== undefined) return enabled.find((connection) => isNamed(connection, name));
  return enabled.find((connection) => connection.name === preferred) ?? enabled[0];
}

/** Whether a connection answers to a name: its own, or one of its realms'. */
export function isNamed(connection: Connection, name: string): boolean {
  return connection.name === name || connection.realms?.includes(name) === true;
}
