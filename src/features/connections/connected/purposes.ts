// The purposes of a connection: logins, connected accounts (for the provider's tokens), or both.
import type { Connection } from '../../../records/collections.ts';
import { connectionPurposes } from '../../../records/connections/connections.ts';
import type { Config } from '../../../tenant/config.ts';
import { strategyOf } from '../strategies.ts';
import type { Upstream } from '../upstream/begin.ts';

/** Returns the connections with which an application's users can connect accounts, ordered by name. */
export async function connectableConnections(
  config: Pick<Config, 'connectionsOf'>,
  clientId: string,
): Promise<Upstream[]> {
  return (await config.connectionsOf(clientId)).flatMap((connection) => {
    const strategy = strategyOf(connection);
    const givesTokens = strategy?.page === 'redirect' && strategy.refresh !== undefined;
    const connectsAccounts = connectionPurposes(connection).connectsAccounts || sharesLoginTokens(connection);
    return givesTokens && connectsAccounts ? [{ connection, strategy }] : [];
  });
}

/** Whether every login makes a connected account of its tokens (`federated_connections_access_tokens.active`). */
export function sharesLoginTokens({ options }: Pick<Connection, 'options'>): boolean {
  const { federated_connections_access_tokens: setting } = options;
  return typeof setting === 'object' && setting !== null && 'active' in setting && setting.active === true;
}
