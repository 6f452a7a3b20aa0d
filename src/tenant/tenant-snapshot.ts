// The configuration of a tenant at one revision of its store.

import { canonicalDomain } from '../records/base/email.ts';
import type { Frozen } from '../records/base/record.ts';
import { isSigningAlg, SIGNING_ALGS, type SigningAlg } from '../records/base/signing-algs.ts';
import { originTest } from '../records/clients/allowed-urls.ts';
import { THIRD_PARTIES } from '../records/clients/apis.ts';
import { idTokenAlg, responseAlg } from '../records/clients/clients.ts';
import { isStrangerId } from '../records/clients/registrations.ts';
import { effectiveClient } from '../records/clients/third-parties.ts';
import type {
  Client,
  ClientGrant,
  Connection,
  Organization,
  ResourceServer,
} from '../records/collections.ts';
import type { SigningKeyRecord } from '../records/state/engine.ts';
import { ACTION_MODULE } from '../records/tenant/action-modules.ts';
import { type BoundAction, boundActions } from '../records/tenant/actions.ts';
import { type CustomDomain, customDomainsOf } from '../records/tenant/custom-domains.ts';
import {
  EXCHANGE_PROFILE,
  type ExchangeProfile,
  exchangeProfilesOf,
} from '../records/tenant/exchange-profiles.ts';
import { MOVE, type MoveRecord } from '../records/tenant/move.ts';
import { NETWORK_ACL, type NetworkAcl, networkAclsOf } from '../records/tenant/network-acls.ts';
import { PHONE_TEMPLATE, type PhoneTemplate, phoneTemplatesOf } from '../records/tenant/phone-templates.ts';
import { RULE, RULE_VARIABLE, type Rules, rulesOf } from '../records/tenant/rules.ts';
import type { TenantRecord } from '../records/tenant/tenant.ts';
import type { TrustedKeyRecord } from '../records/tenant/trusted-keys.ts';
import { discoverableDomainsOf } from '../records/users/organizations.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';

export type SigningKey = Frozen<SigningKeyRecord>;

/** Texts, template and theme of pages. */
export interface Look {
  /** By `<prompt>/<language>`. */
  texts: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** The page template, Liquid. */
  template: string | undefined;
  /** The theme as it was set. */
  theme: Readonly<Record<string, unknown>> | undefined;
}

/** The configuration at one revision of the store. */
export interface Snapshot {
  revision: number;
  settings: Frozen<TenantRecord>;
  look: Look;
  customDomains: readonly CustomDomain[];
  /** Active lists, in order. */
  networkAcls: readonly NetworkAcl[];
  /** By type. */
  phoneTemplates: ReadonlyMap<string, PhoneTemplate>;
  signingKeys: readonly SigningKey[];
  signingAlgs: ReadonlySet<SigningAlg>;
  detailsTypes: ReadonlySet<string>;
  /** By trigger. */
  actions: ReadonlyMap<string, readonly BoundAction[]>;
  rules: Rules;
  /** By subject token type. */
  exchangeProfiles: ReadonlyMap<string, ExchangeProfile>;
  clients: ReadonlyMap<string, Client>;
  /** Whether an origin is that of any application's pages. */
  isOrigin(origin: string): boolean;
  /** By name, in name order. */
  connections: ReadonlyMap<string, Connection>;
  resourceServers: ReadonlyMap<string, ResourceServer>;
  /** The identifiers of APIs with an application of their own. */
  apisWithApplication: ReadonlySet<string>;
  /** By id, and by name. */
  organizations: ReadonlyMap<string, Organization>;
  organizationsByDomain: ReadonlyMap<string, Organization>;
  clientGrants: ReadonlyMap<string, ClientGrant>;
  move: Frozen<MoveRecord> | undefined;
  trustedKeys: readonly Frozen<TrustedKeyRecord>[];
}

// docs/understand/decisions/store.md#the-configuration-is-read-once-for-each-revision-of-the-store
/** @param before the last one: parts that did not change stay the same object, see {@link derived}. */
export async function readSnapshot(store: Store, before?: Snapshot): Promise<Snapshot> {
  // Read first: what is written while the rest is read makes another revision, and is read again.
  const revision = store.revision();
  const [settings, keys, clients, connections, apis, organizations, grants, move, trustedKeys, documents] =
    await Promise.all([
      store.collection('tenant').get('tenant'),
      listAll(store.collection('signingKeys')),
      listAll(store.collection('clients')).then((all) => all.map(effectiveClient)),
      listAll(store.collection('connections')),
      listAll(store.collection('resourceServers')),
      listAll(store.collection('organizations')),
      listAll(store.collection('clientGrants')),
      store.collection('moves').get(MOVE),
      listAll(store.collection('trustedKeys')),
      readDocuments(store),
    ]);
  if (settings === undefined) throw new Error('the store holds no tenant: apply a tenant file first');
  const organizationsByName = new Map(
    organizations.map((organization) => [organization.name.toLowerCase(), organization] as const),
  );
  const signingKeys = SIGNING_ALGS.flatMap((alg) => keysFor(keys, alg));
  return {
    revision,
    settings,
    ...documents,
    networkAcls: isSame(before?.networkAcls, documents.networkAcls)
      ? before.networkAcls
      : documents.networkAcls,
    signingKeys: isSame(before?.signingKeys, signingKeys) ? before.signingKeys : signingKeys,
    signingAlgs: signingAlgsOf(clients, apis),
    detailsTypes: new Set(
      apis.flatMap(({ authorization_details: details }) => details?.map(({ type }) => type) ?? []),
    ),
    clients: new Map(clients.map((client) => [client.client_id, client])),
    isOrigin: originTest(clients, (name) => organizationsByName.get(name)),
    connections: new Map(
      connections
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map((connection) => [connection.name, connection]),
    ),
    resourceServers: new Map(apis.map((api) => [api.identifier, api])),
    apisWithApplication: new Set(
      clients.flatMap(({ app_type: type, resource_server_identifier: api }) =>
        type === 'resource_server' ? [api ?? []].flat() : [],
      ),
    ),
    // Ids come last, so that an organization named like another's id does not replace it.
    organizations: new Map([
      ...organizationsByName,
      ...organizations.map((organization) => [organization.name, organization] as const),
      ...organizations.map((organization) => [organization.id, organization] as const),
    ]),
    organizationsByDomain: new Map(
      organizations.flatMap((organization) =>
        discoverableDomainsOf(organization).map(
          (domain) => [canonicalDomain(domain) ?? domain, organization] as const,
        ),
      ),
    ),
    clientGrants: new Map(
      grants.map((grant) => [clientGrantKey(grant.client_id ?? THIRD_PARTIES, grant.audience), grant]),
    ),
    move,
    trustedKeys,
  };
}

async function readDocuments(
  store: Store,
): Promise<
  Pick<
    Snapshot,
    'look' | 'customDomains' | 'networkAcls' | 'phoneTemplates' | 'actions' | 'rules' | 'exchangeProfiles'
  >
> {
  const documents = store.collection('documents');
  const [
    texts,
    template,
    themes,
    domains,
    acls,
    phone,
    actions,
    triggers,
    rules,
    variables,
    profiles,
    modules,
  ] = await Promise.all([
    documents.findBy('kind', 'custom-text'),
    documents.get('universal-login'),
    documents.findBy('kind', 'theme'),
    documents.findBy('kind', 'custom-domain'),
    documents.findBy('kind', NETWORK_ACL),
    documents.findBy('kind', PHONE_TEMPLATE),
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
    networkAcls: networkAclsOf(acls),
    phoneTemplates: phoneTemplatesOf(phone),
    actions: boundActions(actions, triggers, modules),
    rules: rulesOf(rules, variables),
    exchangeProfiles: exchangeProfilesOf(profiles, actions, modules),
  };
}

/** Returns the algorithms that applications and APIs use, and RS256. */
function signingAlgsOf(clients: readonly Client[], apis: readonly ResourceServer[]): Set<SigningAlg> {
  const algs = [
    ...clients.flatMap((client) => [idTokenAlg(client), responseAlg(client)]),
    ...apis.map(({ signing_alg }) => signing_alg),
  ];
  return new Set(['RS256', ...algs.filter(isSigningAlg)]);
}

/** Returns the key of the grant of an application, or of all third-party applications, for an API. */
const clientGrantKey = (clientId: string, audience: string) => `${clientId}\n${audience}`;

/** @see Config.clientGrant */
export function clientGrantOf(
  { clients, clientGrants }: Pick<Snapshot, 'clients' | 'clientGrants'>,
  clientId: string,
  audience: string,
): ClientGrant | undefined {
  const own = clientGrants.get(clientGrantKey(clientId, audience));
  const client = clients.get(clientId);
  const isThirdParty = client === undefined ? isStrangerId(clientId) : client.is_first_party === false;
  if (own !== undefined || !isThirdParty) return own;
  return clientGrants.get(clientGrantKey(THIRD_PARTIES, audience));
}

/** Returns the keys of an algorithm: the current one first, then the next, then previous ones. */
export function keysFor(keys: readonly SigningKey[], alg: SigningAlg): SigningKey[] {
  return (['current', 'next', 'previous'] as const).flatMap((state) =>
    keys.filter((key) => key.state === state && key.jwk.alg === alg),
  );
}

function isSame<T>(before: readonly T[] | undefined, now: readonly T[]): before is readonly T[] {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(now);
}
