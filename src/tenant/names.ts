// References between sections of a tenant file.
import type { DevelopmentUser, TenantFile } from '../records/tenant/tenant.ts';

/**
 * Returns a function that resolves an application's client_id or name to its client_id. Unknown names are returned
 * unchanged.
 */
export function clientIdOf({ clients }: Pick<TenantFile, 'clients'>): (idOrName: string) => string {
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
