// Finds the password connection that a request names.
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import type { Config } from '../../../tenant/config.ts';
import { byForm, type ConnectionQuery, resolveConnection } from '../resolve.ts';
import type { FormStrategy } from '../strategy.ts';

/**
 * Returns the connection that a request names, and its strategy.
 * @param filter accepts a connection; by default any whose users type a password into a form.
 * @throws AuthError 400 `invalid_request` if there is none, or it is not enabled for the application.
 */
export async function databaseFor(
  config: Config,
  query: ConnectionQuery,
  filter = byForm,
): Promise<{ connection: Connection; strategy: FormStrategy }> {
  const found = await resolveConnection(config, query, filter);
  if ('strategy' in found) return found;
  throw new AuthError(
    400,
    'invalid_request',
    'The connection was not found or is not enabled for this application.',
  );
}
