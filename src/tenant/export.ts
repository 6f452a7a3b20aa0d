// Writes the store's tenant back as a tenant file that applies to an identical tenant.
import { stringify } from 'yaml';
import { strategyRecord } from '../records/connections.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { escapeVariables } from './variables.ts';

const HEADER = `# A tenant of Gatehouse, as exported. It holds the applications' secrets: keep it as you keep them.
# Users are not in it.
`;

/** The tenant of a store, as YAML. @throws Error when the store holds none. */
export async function exportTenant(store: Store): Promise<string> {
  const settings = await store.collection('tenant').get('tenant');
  if (settings === undefined) throw new Error('the store holds no tenant');
  const { id: _id, ...sections } = settings;
  const connections = await listAll(store.collection('connections'));
  const isDatabase = ({ strategy }: { strategy: string }) => strategyRecord(strategy)?.isDatabase === true;
  return (
    HEADER +
    stringify(
      escapeVariables({
        ...sections,
        clients: (await listAll(store.collection('clients'))).map(({ id: _key, ...client }) => client),
        databases: connections.filter(isDatabase),
        connections: connections.filter((connection) => !isDatabase(connection)),
        resourceServers: await listAll(store.collection('resourceServers')),
        clientGrants: await listAll(store.collection('clientGrants')),
        organizations: await listAll(store.collection('organizations')),
      }),
    )
  );
}
