// The configuration of the tenant in a store: settings, applications, connections, APIs and signing keys. It is
// read once for each revision of the store, so that a change takes effect with the next request, and reading is
// cheap.

import type { Frozen } from '../records/base/record.ts';
import type { SigningAlg } from '../records/base/signing-algs.ts';
import { isClientUrl, isRegistrationId } from '../records/clients/registrations.ts';
import { isStrict } from '../records/clients/third-parties.ts';
import type {
  Client,
  ClientGrant,
  Connection,
  Organization,
  ResourceServer,
} from '../records/collections.ts';
import type { BoundAction } from '../records/tenant/actions.ts';
import type { CustomDomain } from '../records/tenant/custom-domains.ts';
import type { ExchangeProfile } from '../records/tenant/exchange-profiles.ts';
import type { MoveRecord } from '../records/tenant/move.ts';
import type { NetworkAcl } from '../records/tenant/network-acls.ts';
import type { PhoneTemplate } from '../records/tenant/phone-templates.ts';
import type { Rules } from '../records/tenant/rules.ts';
import type { TenantRecord } from '../records/tenant/tenant.ts';
import type { TrustedKeyRecord } from '../records/tenant/trusted-keys.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import { admitsDocument, registeredClients } from './registered-clients.ts';
import { clientGrantOf, type Look, readSnapshot, type SigningKey, type Snapshot } from './tenant-snapshot.ts';

export interface Config {
  /** The revision of the store that this configuration was read at. It changes with every write. */
  revision(): number;
  settings(): Frozen<TenantRecord>;
  /** Returns the custom domains that are verified and have an API key. */
  customDomains(): Promise<readonly CustomDomain[]>;
  customOrigins(): readonly string[];
  /** Returns the active network access control lists, in order. It is the same array while none changes. */
  networkAcls(): readonly NetworkAcl[];
  look(): Look;
  /** The tenant's own texts of messages to phones, by type. */
  phoneTemplates(): ReadonlyMap<string, PhoneTemplate>;
  /**
   * The signing keys by algorithm, RS256 first: the current key, which signs; the next, which is published before
   * it signs; then previous ones.
   * @see keysFor
   */
  signingKeys(): readonly SigningKey[];
  /** The signing algorithms of applications and APIs, and RS256. */
  signingAlgs(): ReadonlySet<SigningAlg>;
  /** The types of `authorization_details` of all APIs. It is the same object while no record changes. */
  authorizationDetailsTypes(): ReadonlySet<string>;
  /** Returns the actions that run at a trigger, in order. */
  actions(trigger: string): readonly BoundAction[];
  /** Returns the custom token exchange profile for a subject token type. */
  exchangeProfile(subjectTokenType: string): ExchangeProfile | undefined;
  rules(): Rules;
  /** Returns the move from another tenant, open or over; undefined if there is none. */
  move(): Promise<Frozen<MoveRecord> | undefined>;
  /** The public keys of an old tenant, also those whose time is over. */
  trustedKeys(): readonly Frozen<TrustedKeyRecord>[];
  /**
   * Reads what was written since the last reading. Members that return no promise show the state of that reading.
   * @returns undefined when nothing was written.
   */
  refresh(): Promise<unknown> | undefined;
  client(clientId: string): Promise<Client | undefined>;
  clients(): Promise<Client[]>;
  isApplicationOrigin(origin: string): Promise<boolean>;
  connection(name: string): Promise<Connection | undefined>;
  connections(): Promise<Connection[]>;
  /**
   * Returns the connections that are enabled for an application, or for all third-party applications, sorted by
   * name.
   */
  connectionsOf(clientId: string): Promise<Connection[]>;
  resourceServer(identifier: string): Promise<ResourceServer | undefined>;
  /** Whether an API has an application of its own (`app_type: resource_server`), which may ask about its tokens or exchange them. */
  hasApplication(identifier: string): Promise<boolean>;
  /** Returns the organization with that id, or with that name in any letters. */
  organization(idOrName: string): Promise<Organization | undefined>;
  /** Returns what {@link organization} does, at the last reading: the engine does not wait for its check of redirect URIs. */
  knownOrganization(idOrName: string): Organization | undefined;
  /** Returns the organization that has a verified domain, in lower case, for home realm discovery. */
  organizationOfDomain(domain: string): Promise<Organization | undefined>;
  /**
   * Returns what an application may request of an API: its own grant, or that of all third-party applications if it is
   * one and has none.
   */
  clientGrant(clientId: string, audience: string): Promise<ClientGrant | undefined>;
}

/**
 * The configuration that may be shown: nothing of the console is in it. What may show no administrator asks for this: that
 * with the console has another type, and does not compile in its place.
 */
export interface TenantConfig extends Config {
  readonly whose: 'tenant';
}

/** The configuration with the console's application and directory, for what serves logins to it as well. */
export interface FullConfig extends Config {
  readonly whose: 'all';
}

/** Returns the organization with an id, or with a name in any letters. */
function organizationIn({ organizations }: Snapshot, idOrName: string): Organization | undefined {
  return organizations.get(idOrName) ?? organizations.get(idOrName.toLowerCase());
}

const NO_ACTIONS: readonly BoundAction[] = [];

/** @throws Error when no tenant file was ever applied to the store. */
export async function openConfig(store: Store): Promise<TenantConfig> {
  let snapshot = await readSnapshot(store);
  let reading: Promise<Snapshot> | undefined;

  const currentSnapshot = async (): Promise<Snapshot> => {
    while (snapshot.revision !== store.revision()) {
      reading ??= readSnapshot(store, snapshot).finally(() => {
        reading = undefined;
      });
      snapshot = await reading;
    }
    return snapshot;
  };
  /**
   * Returns a part of the configuration that includes every write that has resolved. Not an async function, and
   * immediate when nothing was written, because a request calls it a dozen times.
   */
  const fromSnapshot = <T>(part: (now: Snapshot) => T): Promise<T> =>
    snapshot.revision === store.revision() ? Promise.resolve(part(snapshot)) : currentSnapshot().then(part);

  const registered = registeredClients(store);
  const described = async (clientId: string) =>
    admitsDocument(snapshot.settings.tenant, clientId) ? registered(clientId) : undefined;
  const client = (clientId: string): Promise<Client | undefined> => {
    if (isRegistrationId(clientId)) return registered(clientId);
    const found = fromSnapshot(({ clients }) => clients.get(clientId));
    return isClientUrl(clientId) ? found.then((one) => one ?? described(clientId)) : found;
  };
  return {
    whose: 'tenant',
    revision: () => snapshot.revision,
    settings: () => snapshot.settings,
    look: () => snapshot.look,
    phoneTemplates: () => snapshot.phoneTemplates,
    signingKeys: () => snapshot.signingKeys,
    signingAlgs: () => snapshot.signingAlgs,
    authorizationDetailsTypes: () => snapshot.detailsTypes,
    actions: (trigger) => snapshot.actions.get(trigger) ?? NO_ACTIONS,
    exchangeProfile: (type) => snapshot.exchangeProfiles.get(type),
    rules: () => snapshot.rules,
    trustedKeys: () => snapshot.trustedKeys,
    move: () => fromSnapshot(({ move }) => move),
    refresh: () => (snapshot.revision === store.revision() ? undefined : currentSnapshot()),
    customDomains: () => fromSnapshot((now) => now.customDomains),
    customOrigins: () => snapshot.customDomains.map(({ domain }) => `https://${domain}`),
    networkAcls: () => snapshot.networkAcls,
    client,
    clients: () => fromSnapshot(({ clients }) => [...clients.values()]),
    isApplicationOrigin: (origin) => fromSnapshot(({ isOrigin }) => isOrigin(origin)),
    connection: (name) => fromSnapshot(({ connections }) => connections.get(name)),
    connections: () => fromSnapshot(({ connections }) => [...connections.values()]),
    connectionsOf: async (clientId) => {
      const { is_first_party: isFirst, third_party_security_mode: mode } = (await client(clientId)) ?? {};
      const isOwn = !isStrict({ is_first_party: isFirst, third_party_security_mode: mode });
      return fromSnapshot(({ connections }) =>
        [...connections.values()].filter(
          ({ enabled_clients, is_domain_connection: isForAll }) =>
            (isOwn && enabled_clients.includes(clientId)) || (isFirst === false && isForAll === true),
        ),
      );
    },
    resourceServer: (identifier) => fromSnapshot((now) => now.resourceServers.get(identifier)),
    hasApplication: (identifier) => fromSnapshot((now) => now.apisWithApplication.has(identifier)),
    organization: (idOrName) => fromSnapshot((now) => organizationIn(now, idOrName)),
    knownOrganization: (idOrName) => organizationIn(snapshot, idOrName),
    organizationOfDomain: (domain) => fromSnapshot((now) => now.organizationsByDomain.get(domain)),
    clientGrant: (clientId, audience) => fromSnapshot((now) => clientGrantOf(now, clientId, audience)),
  };
}

/**
 * Returns a function that computes a value from a part of the configuration, again only when that part changes.
 * @param source returns the part, as a member of {@link Config} does.
 */
export function derived<S, T>(source: () => S, make: (source: S) => T): () => T {
  let cached: { source: S; value: T } | undefined;
  return () => {
    const now = source();
    if (cached === undefined || cached.source !== now) cached = { source: now, value: make(now) };
    return cached.value;
  };
}

// What a tenant has that its file does not declare: the APIs and applications of features, which are neither stored nor
// exported.

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
