// The collections of the tenant.
import type { Declaration } from '../records/declaration.ts';

export const tenant: Declaration = {
  name: 'tenant',
  collections: [
    'tenant',
    'clients',
    'resourceServers',
    'clientGrants',
    'connections',
    'organizations',
    'logs',
    'logCounts',
    'marks',
  ],
};
