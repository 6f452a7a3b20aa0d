// The tenant's log events as management clients and log streams read them.
import type { Client, Connection } from '../records/collections.ts';
import { strategyRecord } from '../records/connections.ts';
import type { LogEventRecord } from '../records/log-events.ts';
import type { Frozen } from '../records/record.ts';
import type { Config } from '../tenant/config.ts';

export type LogEvent = Frozen<LogEventRecord>;

/** What the tenant knows of the applications and connections that events name. */
export interface Known {
  clients: readonly Client[];
  connections: readonly Connection[];
}

/** @returns what events are answered with. */
export async function knownOf({
  config,
}: {
  config: Pick<Config, 'clients' | 'connections'>;
}): Promise<Known> {
  return { clients: await config.clients(), connections: await config.connections() };
}

/** What kind of strategy it is, in the words of events. */
export const strategyType = (strategy: string): string =>
  strategyRecord(strategy)?.isDatabase === true
    ? 'database'
    : strategyRecord(strategy)?.proves !== undefined
      ? 'passwordless'
      : ENTERPRISE.has(strategy)
        ? 'enterprise'
        : 'social';

const ENTERPRISE = new Set(['samlp', 'oidc', 'okta', 'waad', 'adfs', 'ad', 'pingfederate', 'google-apps']);

/** An event as it is answered: with the names that tools read. */
export function logView(event: LogEvent, { clients, connections }: Known): Record<string, unknown> {
  const { id, expiresAt: _, details, ...rest } = event;
  const client = clients.find(({ client_id }) => client_id === event.client_id);
  const connection = connections.find(({ name }) => name === event.connection);
  return {
    ...rest,
    ...(client?.name === undefined ? {} : { client_name: client.name }),
    ...(connection === undefined
      ? {}
      : {
          connection_id: connection.id,
          strategy: connection.strategy,
          strategy_type: strategyType(connection.strategy),
        }),
    log_id: id,
    _id: id,
    isMobile: false,
    ...(details === undefined ? {} : { details }),
  };
}
