// Reads applications that registered themselves, as they take effect: one that is blocked does not.
import { effectiveClient } from '../records/clients/third-parties.ts';
import type { Client } from '../records/collections.ts';
import type { Store } from '../store/contract.ts';

/** How many are remembered, so that the engine, which makes an object of each, finds the one that it has made. */
const MAX_REMEMBERED = 500;

/** Makes a function that returns one by its client_id, the same object while it does not change. */
export function registeredClients(
  store: Pick<Store, 'collection'>,
): (clientId: string) => Promise<Client | undefined> {
  const remembered = new Map<string, { text: string; client: Client }>();
  return async (clientId) => {
    const record = await store.collection('registrations').get(clientId);
    const before = remembered.get(clientId);
    remembered.delete(clientId);
    if (record === undefined || record.blocked_at !== undefined) return undefined;
    const text = JSON.stringify(record.client);
    const client = before?.text === text ? before.client : effectiveClient(record.client as Client);
    remembered.set(clientId, { text, client });
    const [oldest] = remembered.keys();
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
    return client;
  };
}
