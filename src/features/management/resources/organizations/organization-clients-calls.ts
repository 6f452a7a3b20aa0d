// `/organizations/{id}/clients`: the clients that are associated with an organization. The association is only
// stored; the client's `organization_usage` decides who may log in.
import { z } from 'zod';
import type { Client, Organization } from '../../../../records/collections.ts';
import type { Store } from '../../../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { arrayAnswer, cursorQuery, pageQuery } from '../../list.ts';
import { conflict, notFound } from '../../resource.ts';
import { changeOrganization, organizationOf } from './organizations.ts';

interface Association {
  client_id: string;
  use_for_member_access: boolean;
}

const call = callsWith<{ store: Store }>();
const path = '/organizations/:id/clients';
const noun = 'organization_clients';

const clientId = z.string().min(1).max(255);
const notAssociated = notFound('The client is not associated with this organization', 'inexistent_client');
const noClient = notFound('The client does not exist', 'inexistent_client');

const clientsOf = (organization: Organization) =>
  (organization.clients as readonly Association[] | undefined) ?? [];

function view({ client_id, use_for_member_access }: Association, client: Client) {
  const { name, app_type, logo_uri, is_first_party, grant_types, organization_usage } = client;
  return {
    client_id,
    use_for_member_access,
    client: { name, app_type, logo_uri, is_first_party, grant_types, organization_usage },
  };
}

/** Returns associations as the API shows them, except those of deleted clients. */
async function views(store: Store, associations: readonly Association[]) {
  const found = await Promise.all(
    associations.map(async (one) => {
      const client = await store.collection('clients').get(one.client_id);
      return client === undefined ? [] : [view(one, client)];
    }),
  );
  return found.flat();
}

async function viewOf(store: Store, organization: Organization, id: string) {
  const [found] = await views(
    store,
    clientsOf(organization).filter((one) => one.client_id === id),
  );
  if (found === undefined) throw notAssociated();
  return found;
}

export const organizationClientCalls: Call<{ store: Store }>[] = [
  call({
    method: 'GET',
    path,
    scopes: [`read:${noun}`],
    summary: 'Get the applications of an organization',
    query: z.strictObject({ ...pageQuery, ...cursorQuery }),
    handle: async ({ store }, { params, query }) => {
      const all = await views(store, clientsOf(await organizationOf(store, params.id)));
      return ok(
        await arrayAnswer(query, all, ({ client_id }) => client_id, {
          key: 'clients',
          isCursorOnly: true,
        }),
      );
    },
  }),
  call({
    method: 'POST',
    path,
    scopes: [`create:${noun}`],
    summary: 'Associate applications with an organization',
    body: z.strictObject({
      clients: z
        .array(z.strictObject({ client_id: clientId, use_for_member_access: z.boolean().default(false) }))
        .min(1)
        .max(50),
    }),
    handle: async ({ store }, { params, body: { clients } }) => {
      const { id } = await organizationOf(store, params.id);
      if ((await views(store, clients)).length < clients.length) throw noClient();
      await changeOrganization(store, id, (current) => {
        const before = clientsOf(current);
        const all = [...before, ...clients];
        if (new Set(all.map(({ client_id }) => client_id)).size < all.length)
          throw conflict('The client is already associated with this organization')();
        return { clients: all };
      });
      return created(await views(store, clients));
    },
  }),
  call({
    method: 'DELETE',
    path,
    scopes: [`delete:${noun}`],
    summary: 'Remove applications from an organization',
    body: z.strictObject({ clients: z.array(clientId).min(1).max(50) }),
    handle: async ({ store }, { params, body }) => {
      const { id } = await organizationOf(store, params.id);
      await changeOrganization(store, id, (current) => ({
        clients: clientsOf(current).filter(({ client_id }) => !body.clients.includes(client_id)),
      }));
      return noContent({ before: body.clients });
    },
  }),
  call({
    method: 'GET',
    path: `${path}/:client_id`,
    scopes: [`read:${noun}`],
    summary: 'Get an application of an organization',
    handle: async ({ store }, { params }) =>
      ok(await viewOf(store, await organizationOf(store, params.id), params.client_id ?? '')),
  }),
  call({
    method: 'PATCH',
    path: `${path}/:client_id`,
    scopes: [`update:${noun}`],
    summary: 'Update an application of an organization',
    body: z.strictObject({ use_for_member_access: z.boolean() }).partial(),
    handle: async ({ store }, { params, body }) => {
      const { client_id = '' } = params;
      const organization = await organizationOf(store, params.id);
      const before = await viewOf(store, organization, client_id);
      const after = await changeOrganization(store, organization.id, (current) => ({
        clients: clientsOf(current).map((one) => (one.client_id === client_id ? { ...one, ...body } : one)),
      }));
      const shown = await viewOf(store, after, client_id);
      return ok(shown, { before, after: shown });
    },
  }),
];
