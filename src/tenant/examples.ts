// The tenant file that comes with Gatehouse, and what of it must not reach production.
import type { TenantFile } from './schema.ts';

/** Where the example is, for a process that is started where there is no tenant file. */
export const EXAMPLE_FILE = new URL('../../config/tenant.yaml', import.meta.url);

/** Secrets that everybody can read in the example. */
const EXAMPLE_SECRET = /^example-/;

/** Why a tenant file is not fit for production; empty when it is. */
export function productionFaults(file: TenantFile): string[] {
  const faults = file.clients
    .filter(({ client_secret: secret }) => secret !== undefined && EXAMPLE_SECRET.test(secret))
    .map(({ client_id: id }) => `clients: ${id} has the example's secret`);
  if (file.users.length > 0) faults.push('users: development users are for development only');
  return faults;
}
