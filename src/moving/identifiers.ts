// Gives what an export has the ids and secrets of the old tenant. The deploy tool leaves both out: ids unless it is told
// otherwise, secrets of applications always. The Management API has them.
import { z } from 'zod';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { clientIdOfName } from '../tenant/names.ts';
import { linesOfExport } from './export-lines.ts';

const named = z.looseObject({ id: z.string().min(1).max(255), name: z.string() });
const client = z.looseObject({
  client_id: z.string().min(1).max(255),
  name: z.string(),
  client_secret: z.string().min(1).max(4096).optional(),
  global: z.boolean().optional(),
});
const page = z.looseObject({
  clients: z.array(client).optional(),
  connections: z.array(named).optional(),
  organizations: z.array(named).optional(),
  roles: z.array(named).optional(),
});

/** Records of the old tenant's Management API. */
export interface Identifiers {
  clients: z.output<typeof client>[];
  connections: z.output<typeof named>[];
  organizations: z.output<typeof named>[];
  roles: z.output<typeof named>[];
}

/** Which list a record is of that stands in a list without a name. */
const KINDS = [
  ['organizations', 'org_'],
  ['roles', 'rol_'],
  ['connections', 'con_'],
] as const;

/** Reads answers of the Management API: lists, pages of lists, or single records. @throws Error for anything else */
export async function readIdentifiers(files: readonly string[]): Promise<Identifiers> {
  const found: Identifiers = { clients: [], connections: [], organizations: [], roles: [] };
  for (const file of files) {
    for await (const { value, number } of linesOfExport(file)) {
      if (!add(found, value))
        throw new Error(
          `${file}: object ${number} is no application, connection, organization or role of the Management API`,
        );
    }
  }
  return found;
}

function add(found: Identifiers, value: Readonly<Record<string, unknown>> | undefined): boolean {
  const one = client.safeParse(value).data;
  if (one !== undefined) return found.clients.push(one) > 0;
  const record = named.safeParse(value).data;
  const kind = KINDS.find(([, prefix]) => record?.id.startsWith(prefix))?.[0];
  if (record !== undefined && kind !== undefined) return found[kind].push(record) > 0;
  const lists = page.safeParse(value).data;
  if (lists === undefined) return false;
  const names = ['clients', 'connections', 'organizations', 'roles'] as const;
  if (names.every((name) => lists[name] === undefined)) return false;
  found.clients.push(...(lists.clients ?? []));
  for (const name of ['connections', 'organizations', 'roles'] as const)
    found[name].push(...(lists[name] ?? []));
  return true;
}

/**
 * Returns a tenant with the ids and secrets of records of the same names.
 * @returns also a line for each application that others at the old tenant share the name with, and that gets nothing.
 */
export function withIdentifiers(
  tenant: TenantFile,
  identifiers: Identifiers,
): { tenant: TenantFile; report: string[] } {
  const report: string[] = [];
  const clients = tenant.clients.map((one) => {
    const same = identifiers.clients.filter(
      (other) =>
        other.global !== true &&
        (other.client_id === one.client_id ||
          (one.client_id === clientIdOfName(one.name) && other.name === one.name)),
    );
    const [old, ...others] = same;
    if (old === undefined) return one;
    if (others.length > 0) {
      report.push(
        `clients: ${same.length} applications of the old tenant have the name ${one.name}: none of their ids is taken`,
      );
      return one;
    }
    const { client_id, client_secret } = old;
    return { ...one, client_id, ...(client_secret !== undefined && { client_secret }) };
  });
  const withIds = <T extends { name: string; id?: string | undefined }>(
    all: readonly T[],
    old: readonly { id: string; name: string }[],
  ): T[] => {
    const ids = new Map(old.map(({ id, name }) => [name, id]));
    return all.map((one) => {
      const id = one.id ?? ids.get(one.name);
      return id === undefined ? one : { ...one, id };
    });
  };
  return {
    tenant: {
      ...tenant,
      clients,
      databases: withIds(tenant.databases, identifiers.connections),
      connections: withIds(tenant.connections, identifiers.connections),
      organizations: withIds(tenant.organizations, identifiers.organizations),
      ...(tenant.roles !== undefined && { roles: withIds(tenant.roles, identifiers.roles) }),
    },
    report,
  };
}
