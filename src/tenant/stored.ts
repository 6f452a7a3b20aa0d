// Validates the stored tenant before the server starts. A start changes no existing record, so a manual edit
// may have left values that a tenant file would be rejected for.
import type { z } from 'zod';
import { clientGrantSchema, resourceServerSchema } from '../records/clients/apis.ts';
import { clientSchema } from '../records/clients/clients.ts';
import type { CollectionName } from '../records/collections.ts';
import { connectionSchema, databaseSchema, strategyRecord } from '../records/connections/connections.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';

/**
 * Returns a message for each invalid application, API, client grant or connection in a store: the record, the
 * member and the cause.
 */
export async function storedFaults(store: Store): Promise<string[]> {
  const faultsOf = async (name: CollectionName, schemaOf: (record: object) => z.ZodType) =>
    (await listAll(store.collection(name))).flatMap((record) =>
      (schemaOf(record).safeParse(structuredClone(record)).error?.issues ?? []).map(
        ({ path, message }) => `${name} ${record.id}: ${path.join('.')}: ${message}`,
      ),
    );
  const isDatabase = (record: object) =>
    'strategy' in record && strategyRecord(String(record.strategy))?.isDatabase === true;
  const all = await Promise.all([
    faultsOf('clients', () => clientSchema),
    faultsOf('resourceServers', () => resourceServerSchema),
    faultsOf('clientGrants', () => clientGrantSchema),
    faultsOf('connections', (record) => (isDatabase(record) ? databaseSchema : connectionSchema)),
  ]);
  return all.flat();
}
