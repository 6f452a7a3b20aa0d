// Checks the consistency between the sections of a tenant file.

import { isCallback } from '../http/schemes.ts';
import { normalizeEmail } from '../records/base/email.ts';
import { entryFault } from '../records/clients/allowed-urls.ts';
import { isManagementAudience, isMyAccountAudience } from '../records/clients/apis.ts';
import { TRY_LOGIN } from '../records/clients/clients.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import { wayInFault } from '../records/database-options.ts';
import { runnableModules } from '../records/tenant/action-modules.ts';
import { bindingFault } from '../records/tenant/actions.ts';
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
    ...moduleFaults(file),
    ...profileFaults(file),
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
  const clients = new Set(file.clients.flatMap((client) => [client.client_id, client.name]));
  const apis = new Set(file.resourceServers.map((api) => api.identifier));
  const databases = new Set(file.databases.map((database) => database.name));
  const faults: string[] = [];
  for (const { at, record } of connectionEntries(file)) {
    const unknown = record.enabled_clients.filter((client) => !clients.has(client));
    faults.push(...unknown.map((client) => `${at}.enabled_clients: ${client} is no application here`));
  }
  const connectionNames = new Set(connectionEntries(file).map(({ record }) => record.name));
  file.organizations.forEach(({ connections = [] }, index) => {
    const unknown = connections.filter(({ name }) => !connectionNames.has(name));
    faults.push(
      ...unknown.map(({ name }) => `organizations[${index}].connections: ${name} is no connection here`),
    );
  });
  file.clientGrants.forEach((grant, index) => {
    if (grant.client_id !== undefined && !clients.has(grant.client_id))
      faults.push(`clientGrants[${index}].client_id: ${grant.client_id} is no application here`);
    const isBuiltIn = isManagementAudience(grant.audience) || isMyAccountAudience(grant.audience);
    if (!apis.has(grant.audience) && !isBuiltIn)
      faults.push(`clientGrants[${index}].audience: ${grant.audience} is no API here`);
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

/** Returns triggers with actions that are not in the file, or that cannot run there. */
function triggerFaults(file: TenantFile): string[] {
  const actions = new Map((file.actions ?? []).map((action) => [action.name, action]));
  return Object.entries(file.triggers ?? {}).flatMap(([trigger, bound]) =>
    bound.flatMap(({ action_name: name }, at) => {
      const action = actions.get(name);
      const path = `triggers.${trigger}[${at}].action_name`;
      if (action === undefined) return [`${path}: there is no action ${String(name)}`];
      const fault = bindingFault({ body: action }, trigger);
      return fault === undefined ? [] : [`${path}: the action ${String(name)} ${fault}`];
    }),
  );
}

/** Returns modules of actions that the file does not have in that version. */
function moduleFaults({ actions = [], actionModules }: TenantFile): string[] {
  // A file without the section leaves the stored modules unchanged.
  if (actionModules === undefined) return [];
  const modules = actionModules.map((body) => ({ id: String(body.id), body }));
  return actions.flatMap(({ modules: used }, index) =>
    runnableModules(used, modules).flatMap(({ name, found }, at) =>
      found === undefined
        ? [`actions[${index}].modules[${at}]: there is no module ${name} that is published in that version`]
        : [],
    ),
  );
}

/** Returns databases whose options would let nobody log in. */
function databaseFaults({ databases }: TenantFile): string[] {
  return databases.flatMap((database, index) => {
    const fault = wayInFault(database);
    return fault === undefined ? [] : [`databases[${index}].options: ${fault}`];
  });
}

/** Returns token exchange profiles without an action, whose tokens nothing could validate. */
function profileFaults({ tokenExchangeProfiles = [], actions }: TenantFile): string[] {
  // A file without the section leaves the stored actions unchanged.
  if (actions === undefined) return [];
  return tokenExchangeProfiles.flatMap(({ action, action_id: id }, at) => {
    const isThere = actions.some((one) => one.name === action || (id !== undefined && one.id === id));
    return isThere ? [] : [`tokenExchangeProfiles[${at}].action: there is no action ${action ?? id ?? ''}`];
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
