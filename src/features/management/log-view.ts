// Log events in the form that management clients and log streams receive.

import type { LogEventRecord } from '../../records/base/log-events.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { Client, Connection } from '../../records/collections.ts';
import { strategyRecord } from '../../records/connections/connections.ts';
import type { Config } from '../../tenant/config.ts';

export type LogEvent = Frozen<LogEventRecord>;

/** The clients and connections of the tenant, from which events take names. */
export interface LogContext {
  clients: readonly Client[];
  connections: readonly Connection[];
}

export async function logContextOf({
  config,
}: {
  config: Pick<Config, 'clients' | 'connections'>;
}): Promise<LogContext> {
  return { clients: await config.clients(), connections: await config.connections() };
}

export const strategyType = (strategy: string): string =>
  strategyRecord(strategy)?.isDatabase === true
    ? 'database'
    : strategyRecord(strategy)?.proves !== undefined
      ? 'passwordless'
      : ENTERPRISE.has(strategy)
        ? 'enterprise'
        : 'social';

const ENTERPRISE = new Set(['samlp', 'oidc', 'okta', 'waad', 'adfs', 'ad', 'pingfederate', 'google-apps']);

/** Returns a log event as the API shows it, with the names of its client and connection. */
export function logView(event: LogEvent, { clients, connections }: LogContext): Record<string, unknown> {
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
