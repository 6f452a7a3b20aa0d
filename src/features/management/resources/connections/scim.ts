// The common part of the calls for SCIM configurations and tokens.
import type { Connection } from '../../../../records/collections.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import { documentsOf } from '../../document-resource.ts';
import { notFound } from '../../resource.ts';

export interface ScimConfigurationDependencies {
  store: Store;
  /** ISO 8601. */
  now(): string;
  random: Random;
  tenantName: string;
}

export const PATH = '/connections/:id/scim-configuration';

/** The error for a connection without a configuration. */
export const missing = notFound('Not Found');
const noConnection = notFound('The connection does not exist', 'inexistent_connection');

export const KIND = 'scim-configuration';

export const scimKey = (connectionId: string): string => `scim-${connectionId}`;

/** Deletes a connection's configuration and its tokens. */
export async function removeScim(store: Store, connectionId: string): Promise<void> {
  await store.collection('documents').delete(scimKey(connectionId));
  for (const { id } of await tokensOf(store, connectionId)) await store.collection('documents').delete(id);
}

/** Returns the connection that a path names. @throws AuthError 404 */
export async function connectionOf({ store }: ScimConfigurationDependencies, id = ''): Promise<Connection> {
  const found = await store.collection('connections').get(id);
  if (found === undefined) throw noConnection();
  return found;
}

/** @throws AuthError 404 */
export async function find(deps: ScimConfigurationDependencies, connection: Connection) {
  const found = await deps.store.collection('documents').get(scimKey(connection.id));
  if (found?.kind !== KIND) throw missing();
  return found;
}

/** The kind of the documents with tokens. */
export const TOKEN = 'scim-token';

export async function tokensOf(store: Store, connectionId: string) {
  const all = await documentsOf(store, TOKEN);
  return all.filter(({ body }) => body.connection_id === connectionId);
}
