// The connection with passwords that a request means, in the words of most endpoints.
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import { byForm, type ConnectionQuery, resolveConnection } from '../resolve.ts';
import type { FormStrategy } from '../strategy.ts';

/**
 * @param wanted which; by default any whose users type a password.
 * @throws AuthError 400 `invalid_request` when there is none, or it is not the application's.
 */
export async function databaseFor(
  config: Config,
  asked: ConnectionQuery,
  wanted = byForm,
): Promise<{ connection: Connection; strategy: FormStrategy }> {
  const found = await resolveConnection(config, asked, wanted);
  if ('strategy' in found) return found;
  throw new AuthError(
    400,
    'invalid_request',
    'The connection was not found or is not enabled for this application.',
  );
}
