// References between sections of a tenant file, and the names of applications that it gives no client_id.
import type { DevelopmentUser, TenantFile } from '../records/tenant/tenant.ts';
import { sha256Hex } from '../runtime/secrets.ts';

// docs/understand/decisions/operating.md#an-application-without-a-client_id-is-known-by-its-name
/** Returns the client_id of a new application that the file gives none: made from the name, so that it is the same each time. */
export const clientIdOfName = (name: string): string => sha256Hex(`client\n${name}`).slice(0, 32);

/** Returns a parsed file with a client_id for each application that has a name alone. */
export function withClientIds(document: unknown): unknown {
  const { clients } = (document ?? {}) as { clients?: unknown };
  if (!Array.isArray(clients)) return document;
  const named = clients.map((client: unknown) => {
    const { client_id: id, name } = (client ?? {}) as { client_id?: unknown; name?: unknown };
    return (id ?? undefined) === undefined && typeof name === 'string'
      ? { ...(client as object), client_id: clientIdOfName(name) }
      : client;
  });
  return { ...(document as object), clients: named };
}

/**
 * Returns a file in which an application without a client_id of its own has that of the stored one with its name.
 * @throws Error if several stored ones have the name
 */
export function withStoredClientIds(
  file: TenantFile,
  stored: readonly { readonly client_id: string; readonly name: string }[],
): TenantFile {
  const declared = new Set(file.clients.map((client) => client.client_id));
  const ids = new Set(stored.map((client) => client.client_id));
  const clients = file.clients.map((client) => {
    if (client.client_id !== clientIdOfName(client.name) || ids.has(client.client_id)) return client;
    const [same, ...others] = stored.filter(
      ({ client_id, name }) => name === client.name && !declared.has(client_id),
    );
    if (others.length > 0)
      throw new Error(
        `clients: ${others.length + 1} applications have the name ${client.name}: give the client_id of the one that is meant`,
      );
    return same === undefined ? client : { ...client, client_id: same.client_id };
  });
  return { ...file, clients };
}

/**
 * Returns a function that resolves an application's client_id or name to its client_id. Unknown names are returned
 * unchanged.
 */
export function clientIdOf({
  clients,
}: {
  readonly clients: readonly { readonly client_id: string; readonly name: string }[];
}): (idOrName: string) => string {
  const ids = new Set(clients.map((client) => client.client_id));
  const idByName = new Map(clients.map((client) => [client.name, client.client_id]));
  return (named) => (ids.has(named) ? named : (idByName.get(named) ?? named));
}

/**
 * Returns the connection of a development user: its own, else the default directory, else the first database; empty when the
 * file has none. A default directory that is no database (LDAP) has users of its own.
 */
export function directoryOf(
  { tenant, databases }: TenantFile,
  user: Pick<DevelopmentUser, 'connection'>,
): string {
  const byDefault = databases.find(({ name }) => name === tenant.default_directory) ?? databases[0];
  return user.connection ?? byDefault?.name ?? '';
}
