// `/organizations/{id}/discovery-domains`: the e-mail domains by which an organization is found. Each belongs to one
// organization.

import { z } from 'zod';
import { canonicalDomain } from '../../../../records/base/email.ts';
import type { Organization } from '../../../../records/collections.ts';
import { type DiscoveryDomain, discoveryDomainsOf } from '../../../../records/users/organizations.ts';
import { sha256Hex } from '../../../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { arrayAnswer, cursorQuery, pageQuery } from '../../list.ts';
import { conflict, notFound } from '../../resource.ts';
import { changeOrganization, organizationOf } from './organizations.ts';

const call = callsWith<{ store: Store }>();
const path = '/organizations/:id/discovery-domains';
const noun = 'organization_discovery_domains';

const MAX_DOMAINS = 100;

const settings = {
  status: z.enum(['pending', 'verified']),
  use_for_organization_discovery: z.boolean(),
};

const emailDomain = z
  .string()
  .max(253)
  .transform((domain) => canonicalDomain(domain) ?? domain)
  .pipe(z.hostname());

const missing = notFound('No organization discovery domain found by that id');
const taken = conflict('An organization discovery domain with the same domain already exists.');

/** Returns an id that is derived from organization and domain, so that domains from a tenant file have one too. */
function idOf(organization: string, domain: string, prefix: string): string {
  return `${prefix}${sha256Hex(`${organization}\n${domain}`).slice(0, 16)}`;
}

function view({ id }: Organization, { domain, status, use_for_organization_discovery }: DiscoveryDomain) {
  return {
    id: idOf(id, domain, 'odd_'),
    domain,
    status,
    use_for_organization_discovery: use_for_organization_discovery ?? true,
    verification_txt: `gatehouse-domain-verification=${idOf(id, domain, 'txt-')}`,
    verification_host: `_gatehouse.${domain}`,
  };
}

async function find(store: Store, params: Readonly<Record<string, string>>) {
  const organization = await organizationOf(store, params.id);
  const domain = discoveryDomainsOf(organization).find(
    (one) => view(organization, one).id === params.domain_id,
  );
  return { organization, domain };
}

export const organizationDomainCalls: Call<{ store: Store }>[] = [
  call({
    method: 'GET',
    path,
    scopes: [`read:${noun}`],
    summary: 'Get the discovery domains of an organization',
    query: z.strictObject({ ...pageQuery, ...cursorQuery }),
    handle: async ({ store }, { params, query }) => {
      const organization = await organizationOf(store, params.id);
      const all = discoveryDomainsOf(organization).map((one) => view(organization, one));
      return ok(await arrayAnswer(query, all, ({ id }) => id, { key: 'domains', isCursorOnly: true }));
    },
  }),
  call({
    method: 'POST',
    path,
    scopes: [`create:${noun}`],
    summary: 'Add a discovery domain to an organization',
    body: z.strictObject({ ...z.strictObject(settings).partial().shape, domain: emailDomain }),
    handle: async ({ store }, { params, body }) => {
      const organization = await organizationOf(store, params.id);
      const { domain: name, status = 'pending', use_for_organization_discovery = true } = body;
      const domain: DiscoveryDomain = { domain: name, status, use_for_organization_discovery };
      await changeOrganization(store, organization.id, (current) => {
        const before = discoveryDomainsOf(current);
        if (before.some((one) => one.domain === domain.domain)) throw taken();
        if (before.length >= MAX_DOMAINS)
          throw conflict('The organization has too many discovery domains.')();
        return { discovery_domains: [...before, domain] };
      }).catch((thrown: unknown) => {
        throw thrown instanceof UniqueKeyError ? taken() : thrown;
      });
      return created(view(organization, domain));
    },
  }),
  call({
    method: 'GET',
    path: `${path}/name/:domain`,
    scopes: [`read:${noun}`],
    summary: 'Get a discovery domain of an organization by its name',
    handle: async ({ store }, { params }) => {
      const organization = await organizationOf(store, params.id);
      const found = discoveryDomainsOf(organization).find(
        ({ domain }) => canonicalDomain(domain) === canonicalDomain(params.domain ?? ''),
      );
      if (found === undefined) throw missing();
      return ok(view(organization, found));
    },
  }),
  call({
    method: 'GET',
    path: `${path}/:domain_id`,
    scopes: [`read:${noun}`],
    summary: 'Get a discovery domain of an organization',
    handle: async ({ store }, { params }) => {
      const { organization, domain } = await find(store, params);
      if (domain === undefined) throw missing();
      return ok(view(organization, domain));
    },
  }),
  call({
    method: 'PATCH',
    path: `${path}/:domain_id`,
    scopes: [`update:${noun}`],
    summary: 'Update a discovery domain of an organization',
    body: z.strictObject(settings).partial(),
    handle: async ({ store }, { params, body }) => {
      const { organization, domain } = await find(store, params);
      const after = await changeOrganization(store, organization.id, (current) => ({
        discovery_domains: discoveryDomainsOf(current).map((one) =>
          one.domain === domain?.domain ? { ...one, ...body } : one,
        ),
      }));
      const changed = discoveryDomainsOf(after).find((one) => one.domain === domain?.domain);
      if (domain === undefined || changed === undefined) throw missing();
      const shown = view(organization, changed);
      return ok(shown, { before: view(organization, domain), after: shown });
    },
  }),
  call({
    method: 'DELETE',
    path: `${path}/:domain_id`,
    scopes: [`delete:${noun}`],
    summary: 'Remove a discovery domain from an organization',
    handle: async ({ store }, { params }) => {
      const { organization, domain } = await find(store, params);
      if (domain === undefined) return noContent();
      await changeOrganization(store, organization.id, (current) => ({
        discovery_domains: discoveryDomainsOf(current).filter((one) => one.domain !== domain.domain),
      }));
      return noContent({ before: view(organization, domain) });
    },
  }),
];
