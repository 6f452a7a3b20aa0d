// `/custom-domains`: the names that a tenant is also reached by. They are kept; which names a server answers is up to
// BASE_URL and the proxy before it.
import { z } from 'zod';
import { usualMembers } from '../../records/documents.ts';
import { type Call, callsWith, ok } from '../call.ts';
import { idOf } from '../ids.ts';
import { documentOf, type Kept, type KeptDependencies, keptView } from '../kept.ts';
import { keptCalls } from '../kept-calls.ts';
import { notFound } from '../resource.ts';
import { deeplyMerged } from '../section.ts';

const members = {
  custom_client_ip_header: z.string().max(64).nullable(),
  tls_policy: z.enum(['recommended']),
  domain_metadata: z.record(z.string().max(255), z.string().max(255).nullable()),
  relying_party_identifier: z.string().max(255).nullable(),
};
const settable = z.strictObject(members).partial();

const resource: Kept = {
  kind: 'custom-domain',
  path: '/custom-domains',
  name: 'custom domain',
  noun: 'custom_domains',
  idMember: 'custom_domain_id',
  newId: (random) => idOf('cd', random),
  createBody: settable.extend({
    domain: z.hostname(),
    type: z.enum(['auth0_managed_certs', 'self_managed_certs']),
    verification_method: z.enum(['txt']).optional(),
  }),
  patchBody: settable,
  usual: usualMembers['custom-domain'],
  // Of the metadata, too, what is left out stays.
  change: (before, asked) => deeplyMerged(before, asked) as Record<string, unknown>,
  uniqueMember: 'domain',
  list: { key: 'custom_domains' },
  filters: { q: z.string().max(1024).optional(), sort: z.string().max(255).optional() },
  whole: 'bare unless taken',
  missing: notFound('The custom domain does not exist', 'custom_domain_not_found'),
  taken: 'The specified custom domain already exists.',
  hasDates: false,
};

const call = callsWith<KeptDependencies>();

/** All calls of custom domains. */
export const customDomainCalls: Call<KeptDependencies>[] = [
  ...keptCalls(resource),
  call({
    method: 'POST',
    path: '/custom-domains/:id/verify',
    scopes: ['create:custom_domains'],
    summary: 'Verify a custom domain',
    handle: async (deps, { params }) =>
      ok(keptView(resource, await documentOf(deps.store, resource, params.id))),
  }),
];
