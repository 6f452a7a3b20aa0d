// References between sections of a tenant file.
import type { DevelopmentUser, TenantFile } from '../records/tenant.ts';

/**
 * Returns a function that resolves an application's client_id or name to its client_id. Unknown names are returned
 * unchanged.
 */
export function clientIdOf({ clients }: Pick<TenantFile, 'clients'>): (idOrName: string) => string {
  const ids = new Set(clients.map((client) => client.client_id));
  const idByName = new Map(clients.map((client) => [client.name, client.client_id]));
  return (named) => (ids.has(named) ? named : (idByName.get(named) ?? named));
}

/** Returns the connection of a development user; empty when the file has no database. */
export function directoryOf(file: TenantFile, user: DevelopmentUser): string {
  return user.connection ?? file.tenant.default_directory ?? file.databases[0]?.name ?? '';
}
