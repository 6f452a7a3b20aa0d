// Computes the records that a tenant file declares.

import type { Frozen } from '../records/base/record.ts';
import { isManagementAudience, isMyAccountAudience } from '../records/clients/apis.ts';
import {
  type AuthenticationMethod,
  authenticationMethod,
  isCredentialMethod,
} from '../records/clients/client-authentication.ts';
import { credentialId, isNameOnly } from '../records/clients/client-keys.ts';
import { isStrict } from '../records/clients/third-parties.ts';
import type { Records } from '../records/collections.ts';
import type { ClientRecord, ConnectionRecord, TenantFile, TenantRecord } from '../records/tenant/tenant.ts';
import { withFactorTemplates } from '../records/users/guardian.ts';
import { grantsOfEntries } from '../records/users/organization-grants.ts';
import type { Random } from '../runtime/secrets.ts';
import { sha256Hex } from '../runtime/secrets.ts';
import { documentsOf } from './documents.ts';
import { clientIdOf, withStoredClientIds } from './names.ts';
import type { TenantRecords } from './tenant-records.ts';
import { checkReferences, keptRecords, withKeptMembers } from './unmanaged.ts';

interface DeclaredOptions {
  random: Random;
  managementAudience: string;
  /** ISO 8601. */
  now: string;
  /** Whether a stored grant keeps its id where the file gives it another one. */
  keepsIds?: boolean;
}

/**
 * @param stored the stored records. A record without an id or secret in the file keeps the stored one, and so do
 *   sections that the file does not have.
 */
export function declaredRecords(
  declared: TenantFile,
  stored: TenantRecords,
  { random, managementAudience, now, keepsIds = false }: DeclaredOptions,
): TenantRecords {
  const file = withStoredClientIds(declared, stored.clients);
  const kept = keptRecords(file, stored);
  const clientId = clientIdOf({ clients: [...file.clients, ...kept.clients] });
  const connections = withKept<'connections'>(
    connectionsOf(file, { stored, kept, clientId }),
    kept.connections,
  );
  const documents = documentsOf(file, stored.documents, now);
  const apis = withIds('rs', file.resourceServers, stored.resourceServers, ({ identifier }) =>
    String(identifier),
  );
  const clientGrants = withKept<'clientGrants'>(
    clientGrantsOf(file, { stored, clientId, managementAudience, keepsIds }),
    kept.clientGrants,
  );
  const organizations = organizationsOf(
    file,
    stored,
    { connections, clientGrants },
    { clientId, managementAudience },
  );
  const ofFile: TenantRecords = {
    tenant: [settingsOf(file, stored.tenant[0], clientId)],
    clients: withKept<'clients'>(clientsOf(file, stored, random), kept.clients),
    resourceServers: withKept<'resourceServers'>(apis, kept.resourceServers),
    connections,
    clientGrants,
    organizations: withKept<'organizations'>(organizations, kept.organizations),
    roles: file.roles === undefined ? stored.roles : withIds('rol', file.roles, stored.roles, byName),
    documents,
  };
  if (file.unmanaged === undefined) return ofFile;
  checkReferences(file.unmanaged, ofFile);
  return withKeptMembers(file.unmanaged, ofFile, stored);
}

/** Returns the declared records and those that are not managed. */
function withKept<N extends keyof ReturnType<typeof keptRecords>>(
  declared: TenantRecords[N],
  kept: TenantRecords[N],
): TenantRecords[N] {
  const ids = new Set<string>(declared.map(({ id }) => id));
  return [...declared, ...kept.filter(({ id }) => !ids.has(id))] as TenantRecords[N];
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
function settingsOf(
  file: TenantFile,
  before: Frozen<TenantRecord> | undefined,
  clientId: (idOrName: string) => string,
): Records['tenant'] {
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
    phoneTemplates,
    prompts,
    unmanaged,
    guardianSettings: ownSettings = before?.guardianSettings,
    guardianFactorTemplates,
    managementApi = before?.managementApi,
    branding: { templates: _templates, ...branding },
    ...settings
  } = file;
  const guardianSettings = withFactorTemplates(ownSettings, guardianFactorTemplates);
  const { customText: _texts, partials: _partials, ...rest } = prompts ?? {};
  const { account_page: accountPage, ...tenant } = settings.tenant;
  const application = accountPage.client_id && clientId(accountPage.client_id);
  // Custom texts are stored as documents, so they alone do not change the stored settings.
  const promptSettings = prompts === undefined || Object.keys(rest).length === 0 ? before?.prompts : rest;
  const keptSections = Object.entries(before ?? {}).filter(([section]) =>
    unmanaged?.sections.includes(section),
  );
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
    ...structuredClone(Object.fromEntries(keptSections)),
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
  const byId = new Map(stored.clients.map((client) => [client.client_id, client]));
  return file.clients.map((declared) => {
    const client = withStoredKeys(declared, byId.get(declared.client_id));
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

/** Returns an application with the stored keys that the file only names, as exports do. */
function withStoredKeys(
  client: ClientRecord,
  before: TenantRecords['clients'][number] | undefined,
): ClientRecord {
  if (before === undefined) return client;
  const keysOf = ({
    client_authentication_methods: methods,
    signed_request_object: signed,
  }: typeof before) => [
    ...Object.values(methods ?? {}).flatMap((method) => keysIn(method)),
    ...keysIn(signed),
  ];
  const stored = new Map(keysOf(before).map((key) => [credentialId(key), key]));
  const replaced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replaced);
    if (typeof value !== 'object' || value === null) return value;
    const one = value as Readonly<Record<string, unknown>>;
    const kept = isNameOnly(one) ? stored.get(String(one.id)) : undefined;
    return kept ?? Object.fromEntries(Object.entries(one).map(([name, member]) => [name, replaced(member)]));
  };
  const { client_authentication_methods: methods, signed_request_object: signed } = client;
  return {
    ...client,
    ...(methods === undefined ? {} : { client_authentication_methods: replaced(methods) as typeof methods }),
    ...(signed === undefined ? {} : { signed_request_object: replaced(signed) as typeof signed }),
  };
}

const keysIn = (method: unknown): readonly Readonly<Record<string, unknown>>[] =>
  ((Object(method) as { credentials?: unknown }).credentials ?? []) as readonly Readonly<
    Record<string, unknown>
  >[];

function connectionsOf(
  file: TenantFile,
  {
    stored,
    kept,
    clientId,
  }: {
    stored: TenantRecords;
    kept: Pick<TenantRecords, 'clients'>;
    clientId: (idOrName: string) => string;
  },
): Records['connections'][] {
  const enabled = enabledClients(file, stored.connections, { kept: kept.clients, clientId });
  const all: ConnectionRecord[] = [...file.databases, ...file.connections];
  return withIds('con', all, stored.connections, byName).map((connection) => ({
    ...connection,
    options: withLoginOf(connection.options, clientId),
    realms: connection.realms ?? [connection.name],
    enabled_clients: enabled(connection),
  }));
}

/**
 * Returns a function that gives the applications of a connection: those of the file, and of the applications that are not
 * managed those that have it already.
 */
function enabledClients(
  { unmanaged }: TenantFile,
  stored: TenantRecords['connections'],
  { kept, clientId }: { kept: TenantRecords['clients']; clientId: (idOrName: string) => string },
): (connection: ConnectionRecord) => string[] {
  // Without the section, the names that the file has are those of stored applications, as for the deploy tool.
  const isByName = unmanaged !== undefined && !unmanaged.sections.includes('clients');
  const ids = new Set(isByName ? [...unmanaged.clients, ...kept.map(({ client_id: id }) => id)] : []);
  return ({ name, enabled_clients: declared }) => {
    const before = stored.find((one) => one.name === name)?.enabled_clients ?? [];
    const managed = declared.map(clientId).filter((id) => !ids.has(id));
    return [...new Set([...before.filter((id) => ids.has(id)), ...managed])];
  };
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
  {
    stored,
    clientId,
    managementAudience,
    keepsIds,
  }: {
    stored: TenantRecords;
    clientId: (idOrName: string) => string;
    managementAudience: string;
    keepsIds: boolean;
  },
): Records['clientGrants'][] {
  const grants = file.clientGrants.map((grant) => ({
    ...grant,
    audience: ownAudience(grant.audience, managementAudience),
    ...(grant.client_id !== undefined && { client_id: clientId(grant.client_id) }),
  }));
  // A grant is known by its application and API, not by its id, which another stored grant may have by now.
  const keyOf = ({ client_id, default_for, audience }: Readonly<Record<string, unknown>>) =>
    `${client_id ?? default_for}\n${audience}`;
  const storedKeys = new Set(stored.clientGrants.map((grant) => keyOf(grant)));
  const storedIds = new Set<string | undefined>(stored.clientGrants.map(({ id }) => id));
  const named = grants.map((grant) =>
    keepsIds && (storedKeys.has(keyOf(grant)) || storedIds.has(grant.id))
      ? { ...grant, id: undefined }
      : grant,
  );
  return withIds('cgr', named, stored.clientGrants, keyOf);
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
  known: Pick<TenantRecords, 'connections' | 'clientGrants'>,
  { clientId, managementAudience }: { clientId: (idOrName: string) => string; managementAudience: string },
): Records['organizations'][] {
  const idByName = new Map(known.connections.map(({ name, id }) => [name, id]));
  return withIds('org', file.organizations, stored.organizations, byName).map(
    ({ connections, client_grants: entries, ...rest }) => {
      // Missing connections are reported by the cross checks.
      const enabled_connections = connections?.flatMap(({ name, ...flags }) => {
        const connection_id = idByName.get(name);
        return connection_id === undefined ? [] : [{ connection_id, ...flags }];
      });
      const own = entries?.map((one) =>
        typeof one === 'string' || one.audience === undefined
          ? one
          : { ...one, audience: ownAudience(one.audience, managementAudience) },
      );
      const { grants } = grantsOfEntries(own ?? [], known.clientGrants, clientId);
      return {
        ...rest,
        ...(enabled_connections && { enabled_connections }),
        ...(entries && { client_grants: grants.map(({ id }) => id) }),
      };
    },
  );
}
