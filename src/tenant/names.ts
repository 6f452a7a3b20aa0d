// How a tenant file's parts name one another.
import type { DevelopmentUser, TenantFile } from '../records/tenant.ts';

/** The client_id that an application's id or name in a tenant file stands for; unknown ones as they are. */
export function clientIdOf({ clients }: Pick<TenantFile, 'clients'>): (named: string) => string {
  const ids = new Set(clients.map((client) => client.client_id));
  const idByName = new Map(clients.map((client) => [client.name, client.client_id]));
  return (named) => (ids.has(named) ? named : (idByName.get(named) ?? named));
}

/** The connection that a development user belongs to; empty when the file has none. */
export function directoryOf(file: TenantFile, user: DevelopmentUser): string {
  return user.connection ?? file.tenant.default_directory ?? file.databases[0]?.name ?? '';
}
