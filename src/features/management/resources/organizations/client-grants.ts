// `/organizations/{id}/client-grants`, and the reverse, `/client-grants/{id}/organizations`.
import { z } from 'zod';
import type { Organization, Records } from '../../../../records/collections.ts';
import type { Store } from '../../../../store/contract.ts';
import { listAll } from '../../../../store/list-all.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { arrayAnswer, cursorQuery, pageQuery } from '../../list.ts';
import { repeatable } from '../../management-fields.ts';
import { conflict, notFound } from '../../resource.ts';
import { organizationOf } from './organizations.ts';

const call = callsWith<{ store: Store }>();
const path = '/organizations/:id/client-grants';
const noun = 'organization_client_grants';

export const grantsOf = (organization: Organization): readonly string[] =>
  (organization.client_grants as string[] | undefined) ?? [];

export const organizationGrantCalls: Call<{ store: Store }>[] = [
  call({
    method: 'GET',
    path,
    scopes: [`read:${noun}`],
    summary: 'Get the client grants of an organization',
    query: z.strictObject({
      ...pageQuery,
      audience: z.string().optional(),
      client_id: z.string().optional(),
      grant_ids: repeatable.optional(),
    }),
    handle: async ({ store }, { params, query }) => {
      const ids = grantsOf(await organizationOf(store, params.id));
      const found = await Promise.all(ids.map((id) => store.collection('clientGrants').get(id)));
      const chosen = found
        .flatMap((grant) => (grant === undefined ? [] : [grant]))
        .filter((grant) => query.audience === undefined || grant.audience === query.audience)
        .filter((grant) => query.client_id === undefined || grant.client_id === query.client_id)
        .filter((grant) => query.grant_ids === undefined || [query.grant_ids].flat().includes(grant.id));
      return ok(await arrayAnswer(query, chosen, ({ id }) => id, { key: 'client_grants' }));
    },
  }),
  call({
    method: 'POST',
    path,
    scopes: [`create:${noun}`],
    summary: 'Associate a client grant with an organization',
    body: z.strictObject({ grant_id: z.string().max(64) }),
    handle: async ({ store }, { params, body }) => {
      const organization = await organizationOf(store, params.id);
      const grant = await store.collection('clientGrants').get(body.grant_id);
      if (grant === undefined) throw notFound('The client grant does not exist', 'inexistent_client_grant')();
      await store.collection('organizations').update(organization.id, (current) => {
        const grants = grantsOf(current);
        if (grants.includes(grant.id))
          throw conflict('The client grant is already associated with this organization')();
        return { ...(current as Records['organizations']), client_grants: [...grants, grant.id] };
      });
      return created(grant);
    },
  }),
  call({
    method: 'DELETE',
    path: `${path}/:grant_id`,
    scopes: [`delete:${noun}`],
    summary: 'Remove a client grant from an organization',
    handle: async ({ store }, { params }) => {
      const organization = await organizationOf(store, params.id);
      if (!grantsOf(organization).includes(params.grant_id ?? '')) {
        throw notFound('The client grant does not exist', 'inexistent_client_grant')();
      }
      await store.collection('organizations').update(organization.id, (current) => ({
        ...(current as Records['organizations']),
        client_grants: grantsOf(current).filter((id) => id !== params.grant_id),
      }));
      return noContent({ before: params.grant_id });
    },
  }),
  call({
    method: 'GET',
    path: '/client-grants/:id/organizations',
    scopes: [`read:${noun}`],
    summary: 'Get the organizations that may use a client grant',
    query: z.strictObject({ ...pageQuery, ...cursorQuery }),
    handle: async ({ store }, { params, query }) => {
      const grant = await store.collection('clientGrants').get(params.id ?? '');
      if (grant === undefined) throw notFound('The client grant does not exist', 'inexistent_client_grant')();
      const all = (await listAll(store.collection('organizations'))).filter((one) =>
        grantsOf(one).includes(grant.id),
      );
      const shown = all.map(({ id, name, display_name }) => ({ id, name, display_name }));
      return ok(await arrayAnswer(query, shown, ({ id }) => id, { key: 'organizations' }));
    },
  }),
];
