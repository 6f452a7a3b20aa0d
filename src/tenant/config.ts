// The configuration of the tenant in a store: its settings, applications, connections and APIs.

import type {
  Client,
  ClientGrant,
  Connection,
  Organization,
  ResourceServer,
} from '../records/collections.ts';
import type { Frozen } from '../records/record.ts';
import type { TenantRecord } from '../records/tenant.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';

export interface Config {
  /** The tenant's settings as they were when the configuration was opened or last refreshed. */
  settings(): Frozen<TenantRecord>;
  /** Reads the settings again, after they were changed. */
  refresh(): Promise<void>;
  client(clientId: string): Promise<Client | undefined>;
  clients(): Promise<Client[]>;
  /** The connection of that name, if there is one. */
  connection(name: string): Promise<Connection | undefined>;
  connections(): Promise<Connection[]>;
  /** The connections enabled for an application, in name order. */
  connectionsOf(clientId: string): Promise<Connection[]>;
  resourceServer(identifier: string): Promise<ResourceServer | undefined>;
  resourceServers(): Promise<ResourceServer[]>;
  /** The organization with that id or name. */
  organization(idOrName: string): Promise<Organization | undefined>;
  /** What a client may ask of an API by client_credentials. */
  clientGrant(clientId: string, audience: string): Promise<ClientGrant | undefined>;
}

/**
 * Opens the configuration of the tenant in a store.
 * @throws Error when no tenant file was ever applied to this store.
 */
export async function openConfig(store: Store): Promise<Config> {
  let settings = await readSettings(store);
  const connections = () => listAll(store.collection('connections'));
  return {
    settings: () => settings,
    refresh: async () => {
      settings = await readSettings(store);
    },
    client: (clientId) => store.collection('clients').get(clientId),
    clients: () => listAll(store.collection('clients')),
    connection: async (name) => (await store.collection('connections').findBy('name', name))[0],
    connections,
    connectionsOf: async (clientId) =>
      (await connections())
        .filter((connection) => connection.enabled_clients.includes(clientId))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    resourceServer: async (identifier) =>
      (await store.collection('resourceServers').findBy('identifier', identifier))[0],
    resourceServers: () => listAll(store.collection('resourceServers')),
    organization: async (idOrName) =>
      (await store.collection('organizations').get(idOrName)) ??
      (await store.collection('organizations').findBy('name', idOrName))[0],
    clientGrant: async (clientId, audience) =>
      (await store.collection('clientGrants').findBy('clientAudience', `${clientId}\n${audience}`))[0],
  };
}

async function readSettings(store: Store): Promise<Frozen<TenantRecord>> {
  const record = await store.collection('tenant').get('tenant');
  if (record === undefined) throw new Error('the store holds no tenant: apply a tenant file first');
  return record;
}

/** Whether pages of this origin are a browser application's: by its allowed or web origins, or by a callback's. */
export function isOriginOf(client: Client, origin: string): boolean {
  // The origin of every custom scheme, and of every sandboxed page: nobody's own.
  if (origin === '' || origin === 'null') return false;
  return (
    client.allowed_origins.includes(origin) ||
    client.web_origins.includes(origin) ||
    client.callbacks.some((callback) => URL.parse(callback)?.origin === origin)
  );
}

/** Whether pages of this origin are those of any browser application of the tenant. */
export async function isApplicationOrigin(config: Config, origin: string): Promise<boolean> {
  return (await config.clients()).some((client) => isOriginOf(client, origin));
}
