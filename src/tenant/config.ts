// The configuration of the tenant in a store: its settings, applications, connections, APIs and signing keys. It is
// read once for each revision of the store, so that a change is in force with the next request and reading costs
// nothing.
import { ACTION_MODULE } from '../records/action-modules.ts';
import { type BoundAction, boundActions } from '../records/actions.ts';
import { idTokenAlg, responseAlg } from '../records/clients.ts';
import type {
  Client,
  ClientGrant,
  Connection,
  Organization,
  ResourceServer,
} from '../records/collections.ts';
import { type CustomDomain, customDomainsOf } from '../records/custom-domains.ts';
import type { SigningKeyRecord } from '../records/engine.ts';
import { EXCHANGE_PROFILE, type ExchangeProfile, exchangeProfilesOf } from '../records/exchange-profiles.ts';
import { leadingDomainsOf } from '../records/organizations.ts';
import type { Frozen } from '../records/record.ts';
import { RULE, RULE_VARIABLE, type Rules, rulesOf } from '../records/rules.ts';
import { isSigningAlg, SIGNING_ALGS, type SigningAlg } from '../records/signing-algs.ts';
import type { TenantRecord } from '../records/tenant.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';

export type SigningKey = Frozen<SigningKeyRecord>;

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

/** Texts of pages, and the page around them. */
interface Look {
  /** By `<prompt>/<language>`. */
  texts: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** The page template, Liquid. */
  template: string | undefined;
  /** The theme, as it was given. */
  theme: Readonly<Record<string, unknown>> | undefined;
}

/** The whole configuration at one revision of the store. */
interface Snapshot {
  revision: number;
  settings: Frozen<TenantRecord>;
  look: Look;
  customDomains: readonly CustomDomain[];
  signingKeys: readonly SigningKey[];
  signingAlgs: ReadonlySet<SigningAlg>;
  detailsTypes: ReadonlySet<string>;
  /** By trigger. */
  actions: ReadonlyMap<string, readonly BoundAction[]>;
  rules: Rules;
  /** By subject token type. */
  exchangeProfiles: ReadonlyMap<string, ExchangeProfile>;
  clients: ReadonlyMap<string, Client>;
  origins: ReadonlySet<string>;
  /** By name, in name order. */
  connections: ReadonlyMap<string, Connection>;
  resourceServers: ReadonlyMap<string, ResourceServer>;
  /** By id, and by name. */
  organizations: ReadonlyMap<string, Organization>;
  organizationsByDomain: ReadonlyMap<string, Organization>;
  clientGrants: ReadonlyMap<string, ClientGrant>;
}

/**
 * Opens the configuration of the tenant in a store.
 * @throws Error when no tenant file was ever applied to this store.
 */
export async function openConfig(store: Store): Promise<Config> {
  let snapshot = await read(store);
  let reading: Promise<Snapshot> | undefined;

  const renewed = async (): Promise<Snapshot> => {
    while (snapshot.revision !== store.revision()) {
      reading ??= read(store, snapshot).finally(() => {
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

/** @param before the configuration until now: what did not change stays the same object, see {@link derived}. */
async function read(store: Store, before?: Snapshot): Promise<Snapshot> {
  // First: what is written while the rest is read is read again.
  const revision = store.revision();
  const [settings, keys, clients, connections, apis, organizations, grants, documents] = await Promise.all([
    store.collection('tenant').get('tenant'),
    listAll(store.collection('signingKeys')),
    listAll(store.collection('clients')),
    listAll(store.collection('connections')),
    listAll(store.collection('resourceServers')),
    listAll(store.collection('organizations')),
    listAll(store.collection('clientGrants')),
    readDocuments(store),
  ]);
  if (settings === undefined) throw new Error('the store holds no tenant: apply a tenant file first');
  const signingKeys = SIGNING_ALGS.flatMap((alg) => keysFor(keys, alg));
  return {
    revision,
    settings,
    ...documents,
    signingKeys: isSame(before?.signingKeys, signingKeys) ? before.signingKeys : signingKeys,
    signingAlgs: signingAlgsOf(clients, apis),
    detailsTypes: new Set(
      apis.flatMap(({ authorization_details: details }) => details?.map(({ type }) => type) ?? []),
    ),
    clients: new Map(clients.map((client) => [client.client_id, client])),
    origins: new Set(clients.flatMap(originsOf)),
    connections: new Map(
      connections
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map((connection) => [connection.name, connection]),
    ),
    resourceServers: new Map(apis.map((api) => [api.identifier, api])),
    // An id is no other organization's name, whatever that calls itself.
    organizations: new Map([
      ...organizations.map((organization) => [organization.name, organization] as const),
      ...organizations.map((organization) => [organization.id, organization] as const),
    ]),
    organizationsByDomain: new Map(
      organizations.flatMap((organization) =>
        leadingDomainsOf(organization).map((domain) => [domain, organization] as const),
      ),
    ),
    clientGrants: new Map(grants.map((grant) => [clientGrantKey(grant.client_id, grant.audience), grant])),
  };
}

/** What of the configuration is kept in documents. */
async function readDocuments(
  store: Store,
): Promise<Pick<Snapshot, 'look' | 'customDomains' | 'actions' | 'rules' | 'exchangeProfiles'>> {
  const documents = store.collection('documents');
  const [texts, template, themes, domains, actions, triggers, rules, variables, profiles, modules] =
    await Promise.all([
      documents.findBy('kind', 'custom-text'),
      documents.get('universal-login'),
      documents.findBy('kind', 'theme'),
      documents.findBy('kind', 'custom-domain'),
      documents.findBy('kind', 'action'),
      documents.findBy('kind', 'trigger'),
      documents.findBy('kind', RULE),
      documents.findBy('kind', RULE_VARIABLE),
      documents.findBy('kind', EXCHANGE_PROFILE),
      documents.findBy('kind', ACTION_MODULE),
    ]);
  return {
    look: {
      texts: new Map(texts.map(({ id, body }) => [id.slice('custom-text/'.length), body])),
      template: typeof template?.body.body === 'string' ? template.body.body : undefined,
      theme: themes[0]?.body,
    },
    customDomains: customDomainsOf(domains),
    actions: boundActions(actions, triggers, modules),
    rules: rulesOf(rules, variables),
    exchangeProfiles: exchangeProfilesOf(profiles, actions, modules),
  };
}

/** The algorithms that applications and APIs ask for, and the one that there always is. */
function signingAlgsOf(clients: readonly Client[], apis: readonly ResourceServer[]): Set<SigningAlg> {
  const algs = [
    ...clients.flatMap((client) => [idTokenAlg(client), responseAlg(client)]),
    ...apis.map(({ signing_alg }) => signing_alg),
  ];
  return new Set(['RS256', ...algs.filter(isSigningAlg)]);
}

const clientGrantKey = (clientId: string, audience: string) => `${clientId}\n${audience}`;

/** The keys of an algorithm, the current one first, then the next, and those before. */
export function keysFor(keys: readonly SigningKey[], alg: SigningAlg): SigningKey[] {
  return (['current', 'next', 'previous'] as const).flatMap((state) =>
    keys.filter((key) => key.state === state && key.jwk.alg === alg),
  );
}

function isSame(
  before: readonly SigningKey[] | undefined,
  now: readonly SigningKey[],
): before is readonly SigningKey[] {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(now);
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

/** The origins of an application's pages: its allowed and web origins, and those of its callbacks. */
function originsOf(client: Client): string[] {
  const callbacks = client.callbacks.flatMap((callback) => URL.parse(callback)?.origin ?? []);
  // `null` is the origin of every custom scheme, and of every sandboxed page: nobody's own.
  return [...client.allowed_origins, ...client.web_origins, ...callbacks].filter(
    (origin) => origin !== '' && origin !== 'null',
  );
}

/** Whether pages of this origin are a browser application's: by its allowed or web origins, or by a callback's. */
export function isOriginOf(client: Client, origin: string): boolean {
  return originsOf(client).includes(origin);
}
