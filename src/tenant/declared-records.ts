// Computes the records that a tenant file declares.

import type { Frozen } from '../records/base/record.ts';
import { isManagementAudience, isMyAccountAudience } from '../records/clients/apis.ts';
import {
  type AuthenticationMethod,
  authenticationMethod,
  isCredentialMethod,
} from '../records/clients/client-authentication.ts';
import { isStrict } from '../records/clients/third-parties.ts';
import type { Records } from '../records/collections.ts';
import type { ClientRecord, ConnectionRecord, TenantFile, TenantRecord } from '../records/tenant/tenant.ts';
import type { Random } from '../runtime/secrets.ts';
import { sha256Hex } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import { collectionByName } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { documentsOf } from './documents.ts';
import { clientIdOf, withStoredClientIds } from './names.ts';

/** The collections of a tenant file, in the order in which they are written. */
export const APPLIED_COLLECTIONS = [
  'tenant',
  'clients',
  'resourceServers',
  'connections',
  'clientGrants',
  'organizations',
  'roles',
  'documents',
] as const;
export type AppliedCollection = (typeof APPLIED_COLLECTIONS)[number];

export type TenantRecords = { [N in AppliedCollection]: Frozen<Records[N]>[] };

/** Returns the stored records of all collections that a file can be applied to. */
export async function storedRecords(store: Store): Promise<TenantRecords> {
  const lists = await Promise.all(APPLIED_COLLECTIONS.map((name) => listAll(collectionByName(store, name))));
  return Object.fromEntries(APPLIED_COLLECTIONS.map((name, index) => [name, lists[index]])) as TenantRecords;
}

interface DeclaredOptions {
  random: Random;
  managementAudience: string;
  /** ISO 8601. */
  now: string;
}

/**
 * @param stored the stored records. A record without an id or secret in the file keeps the stored one, and so do
 *   sections that the file does not have.
 */
export function declaredRecords(
  declared: TenantFile,
  stored: TenantRecords,
  { random, managementAudience, now }: DeclaredOptions,
): TenantRecords {
  const file = withStoredClientIds(declared, stored.clients);
  const connections = connectionsOf(file, stored);
  const documents = documentsOf(file, stored.documents, now);
  return {
    tenant: [settingsOf(file, stored.tenant[0])],
    clients: clientsOf(file, stored, random),
    resourceServers: withIds('rs', file.resourceServers, stored.resourceServers, ({ identifier }) =>
      String(identifier),
    ),
    connections,
    clientGrants: clientGrantsOf(file, stored, managementAudience),
    organizations: organizationsOf(file, stored, connections),
    roles: file.roles === undefined ? stored.roles : withIds('rol', file.roles, stored.roles, byName),
    documents,
  };
}

const byName = ({ name }: Readonly<Record<string, unknown>>) => String(name);

/** Returns items with an id: their own, that of the stored record with the same key, or one derived from the key. */
function withIds<T extends { id?: string | undefined }>(
  prefix: string,
  items: readonly T[],
  stored: readonly { id: string }[],
  keyOf: (item: Readonly<Record<string, unknown>>) => string,
): (T & { id: string })[] {
  const ids = new Map(stored.map((record) => [keyOf({ ...record }), record.id]));
  return items.map((item) => {
    const key = keyOf({ ...item });
    return { ...item, id: item.id ?? ids.get(key) ?? stableId(prefix, key) };
  });
}

/** Returns an id derived from the name, so that a second run finds the same record. */
function stableId(prefix: string, name: string): string {
  return `${prefix}_${sha256Hex(name).slice(0, 16)}`;
}

/** Returns the tenant record: all sections that are not collections of their own. */
function settingsOf(file: TenantFile, before: Frozen<TenantRecord> | undefined): Records['tenant'] {
  const {
    clients,
    databases,
    connections,
    resourceServers,
    clientGrants,
    organizations,
    users,
    roles,
    actions,
    actionModules,
    triggers,
    rules,
    rulesConfigs,
    tokenExchangeProfiles,
    themes,
    logStreams,
    customDomains,
    networkACLs,
    prompts,
    guardianSettings = before?.guardianSettings,
    managementApi = before?.managementApi,
    branding: { templates: _templates, ...branding },
    ...settings
  } = file;
  const { customText: _texts, partials: _partials, ...rest } = prompts ?? {};
  const { account_page: accountPage, ...tenant } = settings.tenant;
  const application = accountPage.client_id && clientIdOf(file)(accountPage.client_id);
  // Custom texts are stored as documents, so they alone do not change the stored settings.
  const promptSettings = prompts === undefined || Object.keys(rest).length === 0 ? before?.prompts : rest;
  return {
    ...settings,
    tenant: {
      ...tenant,
      account_page: { ...accountPage, ...(application === undefined ? {} : { client_id: application }) },
    },
    branding,
    ...(promptSettings === undefined ? {} : { prompts: promptSettings }),
    ...(guardianSettings === undefined ? {} : { guardianSettings }),
    ...(managementApi === undefined ? {} : { managementApi }),
    id: 'tenant',
  };
}

/** The hosted service's default grant types by application type. */
const GRANT_TYPES: Partial<Record<NonNullable<ClientRecord['app_type']>, string[]>> & {
  regular_web: string[];
} = {
  spa: ['authorization_code', 'implicit', 'refresh_token'],
  native: ['authorization_code', 'refresh_token'],
  regular_web: ['authorization_code', 'implicit', 'refresh_token', 'client_credentials'],
  non_interactive: ['client_credentials'],
  resource_server: [],
  express_configuration: [],
};

// docs/understand/decisions/clients-keys.md#a-public-application-cannot-get-a-token-for-itself
/** Returns the default grant types of an application's type, without client_credentials for a public application. */
export function defaultGrantTypes(client: ClientRecord, method: AuthenticationMethod): string[] {
  if (isStrict(client)) return ['authorization_code', 'refresh_token'];
  const { app_type } = client;
  // The type of an integration with another service has those of a web application.
  const all = GRANT_TYPES[app_type ?? 'regular_web'] ?? GRANT_TYPES.regular_web;
  return all.filter((type) => method !== 'none' || type !== 'client_credentials');
}

function clientsOf(file: TenantFile, stored: TenantRecords, random: Random): Records['clients'][] {
  const secrets = new Map(stored.clients.map((client) => [client.id, client.client_secret]));
  return file.clients.map((client) => {
    const method = authenticationMethod(client);
    const record = {
      ...client,
      id: client.client_id,
      grant_types: client.grant_types ?? defaultGrantTypes(client, method),
    };
    if (isCredentialMethod(method)) return record;
    record.token_endpoint_auth_method = method;
    if (method === 'none' || client.client_secret !== undefined) return record;
    // A generated secret is kept, because the application uses it.
    const storedSecret = secrets.get(client.client_id);
    return { ...record, client_secret: storedSecret ?? random(48).toString('base64url') };
  });
}

function connectionsOf(file: TenantFile, stored: TenantRecords): Records['connections'][] {
  const clientId = clientIdOf(file);
  const all: ConnectionRecord[] = [...file.databases, ...file.connections];
  return withIds('con', all, stored.connections, byName).map((connection) => ({
    ...connection,
    options: withLoginOf(connection.options, clientId),
    realms: connection.realms ?? [connection.name],
    enabled_clients: [...new Set(connection.enabled_clients.map(clientId))],
  }));
}

/** Returns options whose login that the provider begins (`idpinitiated`) has the application by its client_id. */
function withLoginOf(
  options: ConnectionRecord['options'],
  clientId: (idOrName: string) => string,
): ConnectionRecord['options'] {
  const { idpinitiated } = options as { idpinitiated?: { client_id?: unknown } | null };
  const named = idpinitiated?.client_id;
  if (typeof named !== 'string') return options;
  return { ...options, idpinitiated: { ...idpinitiated, client_id: clientId(named) } };
}

function clientGrantsOf(
  file: TenantFile,
  stored: TenantRecords,
  managementAudience: string,
): Records['clientGrants'][] {
  const clientId = clientIdOf(file);
  const grants = file.clientGrants.map((grant) => ({
    ...grant,
    audience: ownAudience(grant.audience, managementAudience),
    ...(grant.client_id !== undefined && { client_id: clientId(grant.client_id) }),
  }));
  return withIds(
    'cgr',
    grants,
    stored.clientGrants,
    ({ client_id, default_for, audience }) => `${client_id ?? default_for}\n${audience}`,
  );
}

/**
 * Returns an audience; that of the Management API or My Account API of the exporting tenant becomes this server's
 * own.
 */
function ownAudience(audience: string, managementAudience: string): string {
  if (isManagementAudience(audience)) return managementAudience;
  return isMyAccountAudience(audience) ? new URL('/me/', managementAudience).href : audience;
}

function organizationsOf(
  file: TenantFile,
  stored: TenantRecords,
  known: readonly Records['connections'][],
): Records['organizations'][] {
  const idByName = new Map(known.map(({ name, id }) => [name, id]));
  return withIds('org', file.organizations, stored.organizations, byName).map(({ connections, ...rest }) => {
    if (connections === undefined) return rest;
    const enabled_connections = connections.flatMap(({ name, ...flags }) => {
      const connection_id = idByName.get(name);
      // Missing connections are reported by the cross checks.
      return connection_id === undefined ? [] : [{ connection_id, ...flags }];
    });
    return { ...rest, enabled_connections };
  });
}
