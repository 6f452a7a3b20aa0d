// Checks the consistency between the sections of a tenant file.

import { isCallback } from '../http/schemes.ts';
import { normalizeEmail } from '../records/base/email.ts';
import { entryFault } from '../records/clients/allowed-urls.ts';
import { TRY_LOGIN } from '../records/clients/clients.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import { wayInFault } from '../records/database-options.ts';
import { supportsTrigger } from '../records/tenant/actions.ts';
import { streamFaults } from '../records/tenant/log-streams.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { clientIdOf, directoryOf } from './names.ts';
import { urlFaults } from './url-warnings.ts';

export function crossFaults(file: TenantFile): string[] {
  return [
    ...repetitions(file),
    ...callbackFaults(file),
    ...urlFaults(file),
    ...clientFaults(file),
    ...referenceFaults(file),
    ...triggerFaults(file),
    ...logStreamFaults(file),
    ...databaseFaults(file),
  ];
}

/** Returns repeated names and ids, because one of the records would be lost silently. */
function repetitions(file: TenantFile): string[] {
  const clientId = clientIdOf(file);
  const clients = entries('clients', file.clients);
  const apis = entries('resourceServers', file.resourceServers);
  const connections = connectionEntries(file);
  const organizations = entries('organizations', file.organizations);
  const clientGrants = entries('clientGrants', file.clientGrants);
  return [
    ...repeated(clients, (client) => client.client_id),
    // Connections and grants may refer to applications by name.
    ...repeated(clients, nameOf),
    ...repeated(apis, (api) => api.identifier),
    ...repeated(apis, idOf),
    ...repeated(connections, nameOf),
    ...repeated(connections, idOf),
    ...repeated(organizations, ({ name }) => name.toLowerCase()),
    ...repeated(organizations, idOf),
    ...repeated(
      organizations.flatMap(({ at, record: { discovery_domains: domains = [] } }) =>
        domains.map((record, index) => ({ at: `${at}.discovery_domains[${index}]`, record })),
      ),
      ({ domain }) => domain,
    ),
    ...repeated(entries('roles', file.roles ?? []), nameOf),
    ...repeated(entries('roles', file.roles ?? []), idOf),
    ...repeated(entries('actions', file.actions ?? []), ({ name }) => String(name).toLowerCase()),
    ...repeated(entries('actionModules', file.actionModules ?? []), ({ name }) => String(name).toLowerCase()),
    ...repeated(entries('rules', file.rules ?? []), ({ name }) => name.toLowerCase()),
    ...repeated(entries('rulesConfigs', file.rulesConfigs ?? []), ({ key }) => key),
    ...repeated(entries('tokenExchangeProfiles', file.tokenExchangeProfiles ?? []), (one) =>
      one.subject_token_type.toLowerCase(),
    ),
    ...repeated(entries('customDomains', file.customDomains ?? []), ({ domain }) =>
      String(domain).toLowerCase(),
    ),
    ...repeated(entries('logStreams', file.logStreams ?? []), ({ id, name }) => String(id ?? name)),
    ...repeated(entries('networkACLs', file.networkACLs ?? []), ({ id, description }) => id ?? description),
    ...repeated(entries('phoneTemplates', file.phoneTemplates ?? []), ({ type }) => type.toLowerCase()),
    ...repeated(clientGrants, (grant) =>
      grant.client_id === undefined
        ? `${grant.default_for} at ${grant.audience}`
        : `${clientId(grant.client_id)} at ${grant.audience}`,
    ),
    ...repeated(clientGrants, idOf),
    ...repeated(
      entries('users', file.users),
      (user) => `${normalizeEmail(user.email) ?? user.email} in ${directoryOf(file, user)}`,
    ),
  ];
}

interface Entry<T> {
  at: string;
  record: T;
}

function entries<T>(section: string, records: readonly T[]): Entry<T>[] {
  return records.map((record, index) => ({ at: `${section}[${index}]`, record }));
}

/** Returns databases and other connections, which share one set of names. */
function connectionEntries({ databases, connections }: TenantFile) {
  return [...entries('databases', databases), ...entries('connections', connections)];
}

const idOf = ({ id }: { id?: string | undefined }) => id;
const nameOf = ({ name }: { name: string }) => name;

function repeated<T>(all: readonly Entry<T>[], keyOf: (record: T) => string | undefined): string[] {
  const seen = new Set<string>();
  return all.flatMap(({ at, record }) => {
    const key = keyOf(record);
    if (key === undefined) return [];
    if (seen.has(key)) return [`${at}: ${key} is there twice`];
    seen.add(key);
    return [];
  });
}

function callbackFaults({ clients }: TenantFile): string[] {
  return clients.flatMap((client, index) =>
    client.callbacks
      .filter((callback) => !isCallback(callback) && entryFault(callback) === undefined)
      .map((callback) => `clients[${index}].callbacks: ${callback} is no absolute URI without a fragment`),
  );
}

function clientFaults({ clients }: TenantFile): string[] {
  return clients.flatMap((client, index) =>
    client.client_id === TRY_LOGIN
      ? [`clients[${index}].client_id: ${TRY_LOGIN} is the development page's own`]
      : [],
  );
}

function referenceFaults(file: TenantFile): string[] {
  const { unmanaged } = file;
  const clients = namesIn(
    file.clients.flatMap((client) => [client.client_id, client.name]),
    unmanaged?.sections.includes('clients') === true || unmanaged?.third_party_clients === true,
    unmanaged?.clients,
  );
  // Those that are not managed are excluded by their names, and referred to by their identifiers.
  const apis = namesIn(
    file.resourceServers.map((api) => api.identifier),
    unmanaged?.sections.includes('resourceServers') === true || (unmanaged?.resourceServers.length ?? 0) > 0,
  );
  const databases = new Set(file.databases.map((database) => database.name));
  const faults: string[] = [];
  for (const { at, record } of connectionEntries(file)) {
    const unknown = record.enabled_clients.filter((client) => !clients.has(client));
    faults.push(...unknown.map((client) => `${at}.enabled_clients: ${client} is no application here`));
  }
  const connectionNames = namesIn(
    connectionEntries(file).map(({ record }) => record.name),
    ['databases', 'connections'].some((section) => unmanaged?.sections.includes(section)) ||
      unmanaged?.other_connections_than !== undefined,
    [...(unmanaged?.databases ?? []), ...(unmanaged?.connections ?? [])],
  );
  file.organizations.forEach(({ connections = [] }, index) => {
    const unknown = connections.filter(({ name }) => !connectionNames.has(name));
    faults.push(
      ...unknown.map(({ name }) => `organizations[${index}].connections: ${name} is no connection here`),
    );
  });
  const { default_directory: directory, default_audience: audience } = file.tenant;
  if (directory !== undefined && !connectionNames.has(directory))
    faults.push(`tenant.default_directory: ${directory} is no connection here`);
  if (audience !== undefined && !apis.has(audience))
    faults.push(`tenant.default_audience: ${audience} is no API here`);
  file.users.forEach((user, index) => {
    const connection = directoryOf(file, user);
    if (!databases.has(connection)) {
      faults.push(`users[${index}].connection: ${connection || '(none)'} is no database here`);
    }
  });
  file.connections.forEach((connection, index) => {
    if (strategyRecord(connection.strategy)?.isDatabase === true) {
      faults.push(
        `connections[${index}].strategy: ${connection.name} is a database, and goes below databases`,
      );
    }
  });
  return faults;
}

/** Returns the names that may be referred to. @param isOpen whether the store may have others, which apply asks. */
function namesIn(names: readonly string[], isOpen: boolean, others: readonly string[] = []) {
  const known = new Set([...names, ...others]);
  return { has: (name: string) => isOpen || known.has(name) };
}

/** Returns triggers with actions that cannot run there. */
function triggerFaults(file: TenantFile): string[] {
  const actions = new Map((file.actions ?? []).map((action) => [action.name, action]));
  return Object.entries(file.triggers ?? {}).flatMap(([trigger, bound]) =>
    bound.flatMap(({ action_name: name }, at) => {
      const action = actions.get(name);
      return action === undefined || supportsTrigger({ body: action }, trigger)
        ? []
        : [`triggers.${trigger}[${at}].action_name: the action ${String(name)} is of another trigger`];
    }),
  );
}

/** Returns databases whose options would let nobody log in. */
function databaseFaults({ databases }: TenantFile): string[] {
  return databases.flatMap((database, index) => {
    const fault = wayInFault(database);
    return fault === undefined ? [] : [`databases[${index}].options: ${fault}`];
  });
}

/** Returns faults of log streams that could not be sent. */
function logStreamFaults({ logStreams = [] }: TenantFile): string[] {
  return logStreams.flatMap((stream, index) =>
    streamFaults(stream)
      // The file is warned of unknown keys.
      .filter(({ unknownKeys }) => unknownKeys.length === 0)
      .map(({ path, message }) => `logStreams[${index}].${path}: ${message}`),
  );
}
