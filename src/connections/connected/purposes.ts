// What a connection is for: logins, or accounts that users connect for their tokens, or both.
import type { Connection } from '../../records/collections.ts';
import { connectionPurposes } from '../../records/connections.ts';
import type { Config } from '../../tenant/config.ts';
import { strategyOf } from '../strategies.ts';
import type { Upstream } from '../upstream/begin.ts';

/** The connections of an application by which its users connect accounts, in name order: those whose providers give tokens. */
export async function connectable(
  config: Pick<Config, 'connectionsOf'>,
  clientId: string,
): Promise<Upstream[]> {
  return (await config.connectionsOf(clientId)).flatMap((connection: Connection) => {
    const strategy = strategyOf(connection);
    const givesTokens = strategy?.page === 'redirect' && strategy.refresh !== undefined;
    return givesTokens && connectionPurposes(connection).connectsAccounts ? [{ connection, strategy }] : [];
  });
}
