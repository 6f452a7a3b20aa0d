// References between parts of a tenant file.
import type { DevelopmentUser, TenantFile } from '../records/tenant.ts';

/** Resolves an application's client_id or name to its client_id; unknown ones unchanged. */
export function clientIdOf({ clients }: Pick<TenantFile, 'clients'>): (named: string) => string {
  const ids = new Set(clients.map((client) => client.client_id));
  const idByName = new Map(clients.map((client) => [client.name, client.client_id]));
  return (named) => (ids.has(named) ? named : (idByName.get(named) ?? named));
}

/** The connection that a development user belongs to; empty when the file has none. */
export function directoryOf(file: TenantFile, user: DevelopmentUser): string {
  return user.connection ?? file.tenant.default_directory ?? file.databases[0]?.name ?? '';
}
