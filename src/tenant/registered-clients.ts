// Reads applications of strangers, as they take effect: one that is blocked does not.
import type { Frozen } from '../records/base/record.ts';
import { effectiveClient } from '../records/clients/third-parties.ts';
import type { Client } from '../records/collections.ts';
import type { TenantRecord } from '../records/tenant/tenant.ts';
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

/** Whether applications that a document describes are let in, and the one of this URL. */
export function admitsDocument(tenant: Frozen<TenantRecord>['tenant'], url: string): boolean {
  return tenant.client_id_metadata_document_supported === true && admitsHostOf(tenant, url);
}

/** Whether documents and keys of applications may be fetched from the host of a URL. */
export function admitsHostOf(
  { client_id_metadata_documents: hosts }: Frozen<TenantRecord>['tenant'],
  url: string,
): boolean {
  const host = URL.parse(url)?.hostname;
  if (host === undefined) return false;
  const isIn = (list: readonly string[]) => list.some((entry) => isHostOf(entry, host));
  return !isIn(hosts?.denied_hosts ?? []) && (hosts?.allowed_hosts == null || isIn(hosts.allowed_hosts));
}

/** @param entry a host, or `*.` before one for all below it. */
const isHostOf = (entry: string, host: string): boolean =>
  entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : host === entry;
