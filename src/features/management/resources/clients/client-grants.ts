// `/client-grants`: the scopes of APIs that clients may request for themselves or for their users.
import { z } from 'zod';
import { clientGrantSchema, SUBJECT_TYPES, THIRD_PARTIES } from '../../../../records/clients/apis.ts';
import type { ResourceServer } from '../../../../records/collections.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import type { Call } from '../../call.ts';
import { idOf } from '../../ids.ts';
import { apiError } from '../../management-errors.ts';
import { flag } from '../../management-fields.ts';
import { checkedBy, conflict, merged, notFound, resourceCalls } from '../../resource.ts';
import type { Resource } from '../../resource-declaration.ts';

export interface ClientGrantsDependencies {
  store: Store;
  random: Random;
  /** Returns the scopes of an API, the Management API among them; undefined if there is no such API. */
  scopesOf(audience: string): Promise<readonly string[] | undefined>;
  /** Returns the APIs of this server: the Management API and the My Account API. */
  systemApis(): readonly ResourceServer[];
}

const settable = {
  scope: z.array(z.string().min(1).max(280)).max(1000).nullable().optional(),
  organization_usage: z.enum(['deny', 'allow', 'require']).nullable().optional(),
  allow_any_organization: z.boolean().nullable().optional(),
  allow_all_scopes: z.boolean().nullable().optional(),
  authorization_details_types: z.array(z.string()).nullable().optional(),
};

const createBody = z.strictObject({
  ...settable,
  client_id: z.string().min(1).max(255).optional(),
  audience: z.string().min(1).max(600),
  subject_type: z.enum(SUBJECT_TYPES).optional(),
  default_for: z.literal(THIRD_PARTIES).optional(),
});

const resource: Resource<'clientGrants', ClientGrantsDependencies> = {
  collection: 'clientGrants',
  path: '/client-grants',
  name: 'client grant',
  noun: 'client_grants',
  list: { key: 'client_grants' },
  filters: {
    audience: z.string().max(600).optional(),
    client_id: z.string().max(255).optional(),
    allow_any_organization: flag.optional(),
    subject_type: z.enum(SUBJECT_TYPES).optional(),
    default_for: z.string().max(64).optional(),
  },
  matches: (grant, query) =>
    (query.audience === undefined || grant.audience === query.audience) &&
    (query.client_id === undefined || grant.client_id === query.client_id) &&
    (query.subject_type === undefined || (grant.subject_type ?? 'client') === query.subject_type) &&
    (query.default_for === undefined || grant.default_for === query.default_for) &&
    (query.allow_any_organization === undefined ||
      (grant.allow_any_organization ?? false) === query.allow_any_organization),
  schema: clientGrantSchema,
  createBody,
  patchBody: z.strictObject(settable),
  make: async ({ random }, body) => ({
    ...checkedBy(clientGrantSchema, merged({ scope: [], subject_type: 'client' }, body)),
    id: idOf('cgr', random),
  }),
  change: (_deps, grant, body) => ({
    ...checkedBy(clientGrantSchema, merged(grant, body)),
    id: grant.id,
  }),
  check: async ({ store, scopesOf, systemApis }, { client_id, audience, scope, subject_type }) => {
    if (
      subject_type !== 'user' &&
      client_id !== undefined &&
      (await store.collection('clients').get(client_id)) === undefined
    ) {
      throw apiError(404, 'The client does not exist', 'inexistent_client');
    }
    const known = await scopesOf(audience);
    if (known === undefined)
      throw apiError(404, 'The resource server does not exist', 'inexistent_resource_server');
    // The hosted service's Management API has scopes that this one lacks. They open nothing, and tools grant all of them.
    if (systemApis().some(({ identifier }) => identifier === audience)) return;
    const unknown = scope.filter((one) => !known.includes(one));
    if (unknown.length > 0) {
      throw apiError(
        400,
        `Scopes are not defined at the resource server: ${unknown.join(', ')}`,
        'invalid_body',
      );
    }
  },
  view: (_deps, grant) => ({ subject_type: 'client', ...grant }),
  missing: notFound('The grant does not exist.', 'inexistent_client_grant'),
  taken: conflict('A client grant for the same client and audience already exists.'),
};

export const clientGrantCalls: Call<ClientGrantsDependencies>[] = resourceCalls(resource);
