// What refers to a record by its id. A record that a tenant file declares has an id made from its name, so a new record
// of that name would get what still refers to the old one.
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';

/**
 * Removes the references to a record of the configuration. Call it before the record is deleted, so that none is left if
 * the process ends in between, and again after, for those that were added meanwhile.
 */
export async function removeReferences(store: Store, collection: string, id: string): Promise<void> {
  if (collection === 'organizations') {
    await store.collection('memberships').deleteBy('organization', id);
    await store.collection('invitations').deleteBy('organization', id);
    for (const role of await listAll(store.collection('roles')))
      if (role.owner_id === id) await store.collection('roles').delete(role.id);
  }
  if (collection === 'clients') await removeClient(store, id);
  if (collection === 'roles') await removeRole(store, id);
  if (collection === 'connections') await removeConnection(store, id);
}

async function removeClient(store: Store, id: string): Promise<void> {
  await store.collection('clientGrants').deleteBy('client', id);
  for (const connection of await listAll(store.collection('connections'))) {
    if (!connection.enabled_clients.includes(id)) continue;
    await store.collection('connections').update(connection.id, (current) => ({
      ...current,
      enabled_clients: current.enabled_clients.filter((one) => one !== id),
    }));
  }
}

async function removeRole(store: Store, id: string): Promise<void> {
  for (const user of await store.collection('users').findBy('role', id)) {
    await store.collection('users').update(user.id, (current) => ({
      ...current,
      roles: (current.roles ?? []).filter((role) => role !== id),
    }));
  }
  for (const one of await store.collection('memberships').findBy('role', id)) {
    await store.collection('memberships').update(one.id, (current) => ({
      ...current,
      roles: current.roles.filter((role) => role !== id),
    }));
  }
}

async function removeConnection(store: Store, id: string): Promise<void> {
  const isOther = (one: unknown) => (one as { connection_id: string }).connection_id !== id;
  for (const organization of await listAll(store.collection('organizations'))) {
    const enabled = organization.enabled_connections as readonly unknown[] | undefined;
    if (enabled === undefined || enabled.every(isOther)) continue;
    await store.collection('organizations').update(organization.id, (current) => ({
      ...current,
      enabled_connections: ((current.enabled_connections ?? []) as readonly unknown[]).filter(isOther),
    }));
  }
}
