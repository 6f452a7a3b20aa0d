// What must hold between the parts of a tenant file.
import { clientIdOf, directoryOf } from './names.ts';
import type { TenantFile } from './schema.ts';
import { TRY_LOGIN } from './schema-clients.ts';

/** Every contradiction in a tenant file, with its path. */
export function crossFaults(file: TenantFile): string[] {
  return [...repetitions(file), ...callbackFaults(file), ...clientFaults(file), ...referenceFaults(file)];
}

/** What stands for two records would leave one of them out, silently. */
function repetitions(file: TenantFile): string[] {
  const { clients, resourceServers, organizations, clientGrants } = file;
  const connections = [...file.databases, ...file.connections];
  const clientId = clientIdOf(file);
  const ids = (records: readonly { id?: string | undefined }[]) => records.map(({ id }) => id);
  const names = (records: readonly { name: string }[]) => records.map(({ name }) => name);
  return [
    ...repeated(
      'clients',
      clients.map((client) => client.client_id),
    ),
    // Connections and grants may name applications so.
    ...repeated('clients', names(clients)),
    ...repeated(
      'resourceServers',
      resourceServers.map((api) => api.identifier),
    ),
    ...repeated('resourceServers', ids(resourceServers)),
    ...repeated('connections', names(connections)),
    ...repeated('connections', ids(connections)),
    ...repeated('organizations', names(organizations)),
    ...repeated('organizations', ids(organizations)),
    ...repeated(
      'clientGrants',
      clientGrants.map((grant) => `${clientId(grant.client_id)} at ${grant.audience}`),
    ),
    ...repeated('clientGrants', ids(clientGrants)),
    ...repeated(
      'users',
      file.users.map((user) => `${user.email.trim().toLowerCase()} in ${directoryOf(file, user)}`),
    ),
  ];
}

function repeated(section: string, names: readonly (string | undefined)[]): string[] {
  const given = names.filter((name) => name !== undefined);
  const twice = given.filter((name, index) => given.indexOf(name) !== index);
  return [...new Set(twice)].map((name) => `${section}: ${name} is there twice`);
}

/** Schemes that a browser would run or read from disk. */
const FORBIDDEN_SCHEMES = new Set(['javascript:', 'vbscript:', 'data:', 'blob:', 'file:', 'about:']);

function callbackFaults({ clients }: TenantFile): string[] {
  return clients.flatMap((client, index) =>
    client.callbacks
      .filter((callback) => {
        const url = URL.parse(callback);
        return url === null || callback.includes('#') || FORBIDDEN_SCHEMES.has(url.protocol);
      })
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
  for (const connection of [...file.databases, ...file.connections]) {
    for (const client of connection.enabled_clients) {
      if (!clients.has(client))
        faults.push(
          `connection ${connection.name}: enabled_clients names ${client}, which is no application here`,
        );
    }
  }
  file.clientGrants.forEach((grant, index) => {
    if (!clients.has(grant.client_id))
      faults.push(`clientGrants[${index}].client_id: ${grant.client_id} is no application here`);
    if (!apis.has(grant.audience))
      faults.push(`clientGrants[${index}].audience: ${grant.audience} is no API here`);
  });
  const { default_directory: directory, default_audience: audience } = file.tenant;
  if (directory !== undefined && !databases.has(directory))
    faults.push(`tenant.default_directory: ${directory} is no database here`);
  if (audience !== undefined && !apis.has(audience))
    faults.push(`tenant.default_audience: ${audience} is no API here`);
  file.users.forEach((user, index) => {
    const connection = directoryOf(file, user);
    if (!databases.has(connection)) {
      faults.push(`users[${index}].connection: ${connection || '(none)'} is no database here`);
    }
  });
  file.connections.forEach((connection, index) => {
    if (connection.strategy === 'auth0') {
      faults.push(
        `connections[${index}].strategy: ${connection.name} is a database, and goes below databases`,
      );
    }
  });
  return faults;
}
