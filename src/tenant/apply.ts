// Applies a tenant file to the store: missing records at start, everything by `gatehouse apply`.
import { createHash } from 'node:crypto';
import { isManagementAudience } from '../records/apis.ts';
import { type AuthenticationMethod, authenticationMethod } from '../records/client-authentication.ts';
import { collections, type Records } from '../records/collections.ts';
import type {
  ClientRecord,
  ConnectionRecord,
  DevelopmentUser,
  TenantFile,
  TenantRecord,
} from '../records/tenant.ts';
import type { UserRecord } from '../records/users.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { clientIdOf, directoryOf } from './names.ts';

/** `create-missing` changes no existing record; `match` makes the store equal to the file (except users). */
type ApplyMode = 'create-missing' | 'match';

/** Creates a tenant file's development users. */
interface DevelopmentUsers {
  findInConnection(connection: { name: string }, identifier: string): Promise<object | undefined>;
  /** @returns the identifier that is taken, if one is. */
  create(user: {
    connection: string;
    email: string;
    username?: string;
    password: string;
    profile: Partial<UserRecord>;
  }): Promise<object | { taken: string }>;
}

export interface ApplyDependencies {
  store: Store;
  users: DevelopmentUsers;
  random: Random;
  /** The identifier of the Management API here. */
  managementAudience: string;
}

type Section = 'clients' | 'resourceServers' | 'connections' | 'clientGrants' | 'organizations';

/**
 * Applies a tenant file. Each record is written whole, so a second run completes an interrupted one.
 * @param options.users whether the file's development users are created.
 */
export async function applyTenant(
  deps: ApplyDependencies,
  file: TenantFile,
  { mode, users }: { mode: ApplyMode; users: boolean },
): Promise<void> {
  const { store } = deps;
  const settings = await store.collection('tenant').get('tenant');
  if (mode === 'match' || settings === undefined)
    await store.collection('tenant').put({ ...settingsOf(file), id: 'tenant' });
  await applySection(deps, 'clients', mode, await clientsOf(deps, file));
  await applySection(
    deps,
    'resourceServers',
    mode,
    file.resourceServers.map((api) => ({ ...api, id: api.id ?? stableId('rs', api.identifier) })),
  );
  await applySection(deps, 'connections', mode, connectionsOf(file));
  await applySection(deps, 'clientGrants', mode, clientGrantsOf(file, deps.managementAudience));
  await applySection(deps, 'organizations', mode, organizationsOf(file));
  if (users) for (const user of file.users) await createDevelopmentUser(deps, file, user);
}

async function applySection<N extends Section>(
  { store }: ApplyDependencies,
  name: N,
  mode: ApplyMode,
  records: Records[N][],
): Promise<void> {
  const collection = store.collection(name);
  const there = await listAll(collection);
  if (mode === 'create-missing') {
    // Matched by name, too: adding an id to a record in the file must not create a second one.
    const taken = new Set(there.flatMap((record) => keysOf(name, record as Records[N])));
    for (const record of records) {
      if (!keysOf(name, record).some((key) => taken.has(key))) await collection.put(record);
    }
    return;
  }
  // Removed and renamed records first, so that their names are free.
  const declared = new Map(records.map((record) => [record.id, keysOf(name, record).join('\n\n')]));
  for (const record of there) {
    const keys = keysOf(name, record as Records[N]).join('\n\n');
    if (declared.get(record.id) !== keys) await collection.delete(record.id);
  }
  for (const record of records) await collection.put(record);
}

/** The unique keys of a record. */
function keysOf<N extends Section>(name: N, record: Records[N]): string[] {
  const unique = Object.entries(collections[name].unique).flatMap(([key, of]) =>
    [of(record) ?? []].flat().map((value) => `${key} ${value}`),
  );
  return [`id ${record.id}`, ...unique];
}

/** The tenant record: all sections that are not collections of their own. */
function settingsOf(file: TenantFile): TenantRecord {
  const {
    clients,
    databases,
    connections,
    resourceServers,
    clientGrants,
    organizations,
    users,
    ...settings
  } = file;
  return settings;
}

/** An id derived from the name, so that a second run finds the same record. */
function stableId(prefix: string, name: string): string {
  return `${prefix}_${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}

/** The hosted service's default grant types by application type. */
const GRANT_TYPES: Record<ClientRecord['app_type'], string[]> = {
  spa: ['authorization_code', 'implicit', 'refresh_token'],
  native: ['authorization_code', 'refresh_token'],
  regular_web: ['authorization_code', 'implicit', 'refresh_token', 'client_credentials'],
  non_interactive: ['client_credentials'],
};

/** The type's default grant types, without client_credentials for a public application. */
export function defaultGrantTypes({ app_type }: ClientRecord, method: AuthenticationMethod): string[] {
  return GRANT_TYPES[app_type].filter((type) => method !== 'none' || type !== 'client_credentials');
}

async function clientsOf(
  { store, random }: ApplyDependencies,
  file: TenantFile,
): Promise<Records['clients'][]> {
  return Promise.all(
    file.clients.map(async (client) => {
      const method = authenticationMethod(client);
      const record = {
        ...client,
        id: client.client_id,
        grant_types: client.grant_types ?? defaultGrantTypes(client, method),
      };
      if (method === 'private_key_jwt') return record;
      record.token_endpoint_auth_method = method;
      if (method === 'none' || client.client_secret !== undefined) return record;
      // A generated secret is kept, because the application uses it.
      const before = await store.collection('clients').get(client.client_id);
      return { ...record, client_secret: before?.client_secret ?? random(48).toString('base64url') };
    }),
  );
}

function connectionsOf(file: TenantFile): Records['connections'][] {
  const clientId = clientIdOf(file);
  return [...file.databases, ...file.connections].map((connection: ConnectionRecord) => ({
    ...connection,
    id: connection.id ?? stableId('con', connection.name),
    realms: connection.realms ?? [connection.name],
    enabled_clients: [...new Set(connection.enabled_clients.map(clientId))],
  }));
}

/** `connections` names those that an organization has enabled, as the deploy tool does; kept by their ids. */
function organizationsOf(file: TenantFile): Records['organizations'][] {
  const idOfConnection = new Map(connectionsOf(file).map(({ name, id }) => [name, id]));
  return file.organizations.map(({ connections, ...organization }) => ({
    ...organization,
    id: organization.id ?? stableId('org', organization.name),
    ...(connections === undefined
      ? {}
      : {
          enabled_connections: connections.map(({ name, ...enabled }) => ({
            ...enabled,
            connection_id: idOfConnection.get(name) ?? '',
          })),
        }),
  }));
}

function clientGrantsOf(file: TenantFile, managementAudience: string): Records['clientGrants'][] {
  const clientId = clientIdOf(file);
  return file.clientGrants.map((grant) => {
    const client_id = clientId(grant.client_id);
    const audience = isManagementAudience(grant.audience) ? managementAudience : grant.audience;
    return { ...grant, audience, client_id, id: grant.id ?? stableId('cgr', `${client_id}\n${audience}`) };
  });
}

async function createDevelopmentUser(
  { users }: ApplyDependencies,
  file: TenantFile,
  user: DevelopmentUser,
): Promise<void> {
  const connection = directoryOf(file, user);
  if ((await users.findInConnection({ name: connection }, user.email)) !== undefined) return;
  const {
    email,
    password,
    username,
    email_verified,
    blocked,
    multifactor,
    permissions,
    user_metadata,
    app_metadata,
  } = user;
  const created = await users.create({
    connection,
    email,
    password,
    ...(username === undefined ? {} : { username }),
    profile: {
      email_verified,
      user_metadata,
      app_metadata,
      ...(blocked === undefined ? {} : { blocked }),
      ...(multifactor === undefined ? {} : { multifactor }),
      ...(permissions === undefined ? {} : { permissions }),
    },
  });
  if ('taken' in created)
    throw new Error(`users: the ${created.taken} of ${email} is taken in ${connection}`);
}
