// What a tenant has that its file does not declare: the APIs and applications of features, which are neither stored nor
// exported.
import type { Client, Connection, ResourceServer } from '../records/collections.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Config } from './config.ts';

interface BuiltInApi {
  identifier: string;
  /** Called at each use: the tenant may have set some of it. */
  record: () => ResourceServer;
}

interface BuiltInClient {
  client: Client;
  /** All that the tenant declares, or connections of its own, which are as little declared as it is. */
  connections: 'all' | readonly Connection[];
}

/** What a feature adds. */
export interface BuiltIns {
  apis?: readonly BuiltInApi[];
  clients?: readonly BuiltInClient[];
  /** Whether it belongs to administrators: the configuration that the Management API shows is without it. */
  isOfConsole?: true;
}

/** What the records depend on. */
export interface BuiltInNeeds {
  baseUrl: string;
  issuer: string;
  hasConsole: boolean;
  isForThisMachine: boolean;
  settings: Config['settings'];
  random: Random;
}

/** Returns the configuration with what features have added. */
export function withBuiltIns<C extends Config>(config: C, builtIns: readonly BuiltIns[]): C {
  const apis = new Map(
    builtIns.flatMap((one) => one.apis ?? []).map(({ identifier, record }) => [identifier, record]),
  );
  const clients = new Map(
    builtIns.flatMap((one) => one.clients ?? []).map((one) => [one.client.client_id, one]),
  );
  const own = [...clients.values()].flatMap(({ connections }) => (connections === 'all' ? [] : connections));
  const ownConnections = new Map(own.map((one) => [one.name, one]));
  const enabledEverywhere = [...clients.values()]
    .filter(({ connections }) => connections === 'all')
    .map(({ client }) => client.client_id);
  const enable = (connection: Connection | undefined): Connection | undefined =>
    connection && {
      ...connection,
      enabled_clients: [...connection.enabled_clients, ...enabledEverywhere],
    };
  const declared =
    enabledEverywhere.length === 0
      ? config.connection
      : (name: string) => config.connection(name).then(enable);
  return {
    ...config,
    resourceServer: (identifier) => {
      const record = apis.get(identifier);
      return record === undefined ? config.resourceServer(identifier) : Promise.resolve(record());
    },
    client: (id) => {
      const found = clients.get(id);
      return found === undefined ? config.client(id) : Promise.resolve(found.client);
    },
    connection: (name) => {
      const found = ownConnections.get(name);
      return found === undefined ? declared(name) : Promise.resolve(found);
    },
    connectionsOf: async (id) => {
      const found = clients.get(id);
      if (found === undefined) return config.connectionsOf(id);
      if (found.connections !== 'all') return [...found.connections];
      return (await config.connections()).sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}
