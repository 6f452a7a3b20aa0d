// The configuration of the tenant in a store: its settings, applications, connections, APIs and signing keys. It is
// read once for each revision of the store, so that a change is in force with the next request and reading costs
// nothing.
import type { BoundAction } from '../records/actions.ts';
import type {
  Client,
  ClientGrant,
  Connection,
  Organization,
  ResourceServer,
} from '../records/collections.ts';
import type { CustomDomain } from '../records/custom-domains.ts';
import type { ExchangeProfile } from '../records/exchange-profiles.ts';
import type { Frozen } from '../records/record.ts';
import type { Rules } from '../records/rules.ts';
import type { SigningAlg } from '../records/signing-algs.ts';
import type { TenantRecord } from '../records/tenant.ts';
import type { Store } from '../store/contract.ts';
import { clientGrantKey, type Look, readSnapshot, type SigningKey, type Snapshot } from './snapshot.ts';

export interface Config {
  /** The revision of the store that is read here: another one where anything is. */
  revision(): number;
  /** The tenant's settings. */
  settings(): Frozen<TenantRecord>;
  /** Those that are verified and have an API key. */
  customDomains(): Promise<readonly CustomDomain[]>;
  /** The origins at which edges of custom domains serve it, too. */
  customOrigins(): readonly string[];
  /** What the tenant has set of its pages beside its settings. */
  look(): Look;
  /**
   * The keys of each algorithm, RS256 first: the current, which signs; the next, published before it signs; then previous
   * ones. @see keysFor
   */
  signingKeys(): readonly SigningKey[];
  /** The algorithms that applications and APIs have asked for, and RS256. */
  signingAlgs(): ReadonlySet<SigningAlg>;
  /** The types of `authorization_details` that any API has; the same object while no record changes. */
  authorizationDetailsTypes(): ReadonlySet<string>;
  /** The actions that run at a trigger, in order; a tenant without any has none. */
  actions(trigger: string): readonly BoundAction[];
  /** The profile of custom token exchange for a type of subject tokens. */
  exchangeProfile(subjectTokenType: string): ExchangeProfile | undefined;
  /** The rules that run at a login, and what they are configured with. */
  rules(): Rules;
  /**
   * Takes over what was written since the last reading: what is read without waiting is as of then.
   * @returns undefined where nothing was written.
   */
  refresh(): Promise<unknown> | undefined;
  client(clientId: string): Promise<Client | undefined>;
  clients(): Promise<Client[]>;
  /** Whether pages of this origin are those of any browser application of the tenant. */
  isApplicationOrigin(origin: string): Promise<boolean>;
  /** The connection of that name, if there is one. */
  connection(name: string): Promise<Connection | undefined>;
  connections(): Promise<Connection[]>;
  /** The connections enabled for an application, or for all of third parties, in name order. */
  connectionsOf(clientId: string): Promise<Connection[]>;
  resourceServer(identifier: string): Promise<ResourceServer | undefined>;
  /** The organization with that id or name. */
  organization(idOrName: string): Promise<Organization | undefined>;
  /** The organization that addresses of a domain, in lower case, lead to: a verified one that is used for that. */
  organizationOfDomain(domain: string): Promise<Organization | undefined>;
  /** What a client may ask of an API by client_credentials. */
  clientGrant(clientId: string, audience: string): Promise<ClientGrant | undefined>;
}

const NO_ACTIONS: readonly BoundAction[] = [];

/**
 * Opens the configuration of the tenant in a store.
 * @throws Error when no tenant file was ever applied to this store.
 */
export async function openConfig(store: Store): Promise<Config> {
  let snapshot = await readSnapshot(store);
  let reading: Promise<Snapshot> | undefined;

  const renewed = async (): Promise<Snapshot> => {
    while (snapshot.revision !== store.revision()) {
      reading ??= readSnapshot(store, snapshot).finally(() => {
        reading = undefined;
      });
      snapshot = await reading;
    }
    return snapshot;
  };
  /**
   * A part of the configuration with every write that has resolved. At once where there was none, and no async function,
   * because a request asks a dozen times.
   */
  const asOf = <T>(part: (now: Snapshot) => T): Promise<T> =>
    snapshot.revision === store.revision() ? Promise.resolve(part(snapshot)) : renewed().then(part);

  return {
    revision: () => snapshot.revision,
    settings: () => snapshot.settings,
    look: () => snapshot.look,
    signingKeys: () => snapshot.signingKeys,
    signingAlgs: () => snapshot.signingAlgs,
    authorizationDetailsTypes: () => snapshot.detailsTypes,
    actions: (trigger) => snapshot.actions.get(trigger) ?? NO_ACTIONS,
    exchangeProfile: (type) => snapshot.exchangeProfiles.get(type),
    rules: () => snapshot.rules,
    refresh: () => (snapshot.revision === store.revision() ? undefined : renewed()),
    customDomains: () => asOf((now) => now.customDomains),
    customOrigins: () => snapshot.customDomains.map(({ domain }) => `https://${domain}`),
    client: (clientId) => asOf(({ clients }) => clients.get(clientId)),
    clients: () => asOf(({ clients }) => [...clients.values()]),
    isApplicationOrigin: (origin) => asOf(({ origins }) => origins.has(origin)),
    connection: (name) => asOf(({ connections }) => connections.get(name)),
    connections: () => asOf(({ connections }) => [...connections.values()]),
    connectionsOf: (clientId) =>
      asOf(({ clients, connections }) => {
        const isThirdParty = clients.get(clientId)?.is_first_party === false;
        return [...connections.values()].filter(
          ({ enabled_clients, is_domain_connection: isForAll }) =>
            enabled_clients.includes(clientId) || (isThirdParty && isForAll === true),
        );
      }),
    resourceServer: (identifier) => asOf((now) => now.resourceServers.get(identifier)),
    organization: (idOrName) => asOf(({ organizations }) => organizations.get(idOrName)),
    organizationOfDomain: (domain) => asOf((now) => now.organizationsByDomain.get(domain)),
    clientGrant: (clientId, audience) =>
      asOf(({ clientGrants }) => clientGrants.get(clientGrantKey(clientId, audience))),
  };
}

/**
 * What is made of a part of the configuration, once for as long as that part stays the same.
 * @param source the part, as {@link Config} gives it.
 */
export function derived<S, T>(source: () => S, make: (source: S) => T): () => T {
  let made: { source: S; value: T } | undefined;
  return () => {
    const now = source();
    if (made === undefined || made.source !== now) made = { source: now, value: make(now) };
    return made.value;
  };
}
