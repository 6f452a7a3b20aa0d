// Exports the tenant of a store as a tenant file. Applied elsewhere, it makes an identical tenant.
import { stringify } from 'yaml';
import { strategyRecord } from '../records/connections/connections.ts';
import { tenantFileSchema } from '../records/tenant/tenant.ts';
import { guardianSections } from '../records/users/guardian.ts';
import type { Store } from '../store/contract.ts';
import { documentSectionsOf, isDeclarable } from './documents.ts';
import { escapePaths } from './included-files.ts';
import { storedRecords, type TenantRecords } from './tenant-records.ts';
import { escapeVariables } from './variables.ts';

const HEADER = `# A tenant of Gatehouse, as exported. It holds the applications' secrets: keep it as you keep them.
# Users are not in it.
`;

/** Returns the tenant of a store as YAML; equal tenants give equal text. @throws Error when the store has none. */
export async function exportTenant(store: Store): Promise<string> {
  const { file, notHeld } = await tenantDocument(store);
  const header = [HEADER, ...notHeld.map((kind) => `${NOT_HELD}${kind}\n`)].join('');
  return header + stringify(escapePaths(escapeVariables(file)), { aliasDuplicateObjects: false });
}

export interface StoredTenant {
  /** The tenant file, without users, and without variables. */
  file: Record<string, unknown>;
  /** What is stored but has no place in it, with numbers. */
  notHeld: string[];
}

/** @throws Error when the store has no tenant. */
export async function tenantDocument(store: Store): Promise<StoredTenant> {
  const records = await storedRecords(store);
  const document = fileOf(records);
  // Parsed to add defaults for members that an API call left out. What the schema rejects is
  // exported unchanged.
  const { data = document } = tenantFileSchema.safeParse(structuredClone(document));
  const { users: _users, ...file } = data as Record<string, unknown>;
  return { file: ordered(file) as Record<string, unknown>, notHeld: missingKinds(records.documents) };
}

/** The beginning of a line that names what is stored but not part of the file. */
export const NOT_HELD = '# Not in it, as management tools keep it: ';

/**
 * Returns the kinds of documents that management tools have stored and the file has no section for, with their
 * numbers.
 */
function missingKinds(documents: TenantRecords['documents']): string[] {
  const counts = new Map<string, number>();
  for (const { kind } of documents)
    if (!isDeclarable(kind) && !isInternal(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, count]) => `${kind} (${count})`);
}

/** Whether documents of a kind are the server's own records. */
const isInternal = (kind: string) => kind === 'declared' || kind.endsWith('-removal');

function fileOf({ tenant: [settings], ...records }: TenantRecords): object {
  if (settings === undefined) throw new Error('the store holds no tenant');
  const { id: _id, branding, prompts, ...sections } = settings;
  const { connections } = records;
  const isDatabase = ({ strategy }: { strategy: string }) => strategyRecord(strategy)?.isDatabase === true;
  const documents = documentSectionsOf(records.documents);
  return {
    ...sections,
    ...guardianSections(sections.guardianSettings),
    ...documents,
    branding: { ...branding, ...documents.branding },
    prompts: { ...(prompts as object | undefined), ...documents.prompts },
    clients: records.clients.map(({ id: _key, ...client }) => client),
    databases: connections.filter(isDatabase),
    connections: connections.filter((connection) => !isDatabase(connection)),
    resourceServers: records.resourceServers,
    clientGrants: records.clientGrants,
    organizations: records.organizations.map((organization) => withNames(organization, records)),
    roles: records.roles,
  };
}

/** Returns an organization with its connections, and the applications of its client grants, by name, as deploy tools write them. */
function withNames(
  { enabled_connections: enabled, client_grants: granted, ...rest }: TenantRecords['organizations'][number],
  { connections, clients, clientGrants }: Omit<TenantRecords, 'tenant'>,
): object {
  const connectionsByName =
    Array.isArray(enabled) &&
    (enabled as { connection_id: string }[]).flatMap(({ connection_id, ...flags }) => {
      const connection = connections.find(({ id }) => id === connection_id);
      return connection === undefined ? [] : [{ name: connection.name, ...flags }];
    });
  const nameOf = (clientId: string) =>
    clients.find((client) => client.client_id === clientId)?.name ?? clientId;
  const grantsByName = granted?.flatMap((grantId): (string | object)[] => {
    const grant = clientGrants.find(({ id }) => id === grantId);
    if (grant === undefined) return [];
    const { id, client_id: clientId, audience } = grant;
    return clientId === undefined ? [id] : [{ client_id: nameOf(clientId), audience }];
  });
  return {
    ...rest,
    ...(connectionsByName && { connections: connectionsByName }),
    ...(grantsByName && { client_grants: grantsByName }),
  };
}

/** Members that identify a record come first. */
const FIRST_MEMBERS = ['name', 'client_id', 'identifier', 'id', 'strategy', 'audience', 'template', 'domain'];

/** Sorts the members of objects, so that two exports can be compared. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const rank = (name: string) =>
    FIRST_MEMBERS.includes(name) ? FIRST_MEMBERS.indexOf(name) : FIRST_MEMBERS.length;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
      .map(([name, member]) => [name, ordered(member)]),
  );
}
