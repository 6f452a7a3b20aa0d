// `/custom-domains`: further host names of a tenant. A domain is verified by a TXT record, which only its owner can
// publish. A domain with certificates of its own then gets an API key, with which its reverse proxy authenticates.
import { z } from 'zod';
import type { Dns } from '../../../../http/dns.ts';
import { apiKeyHash } from '../../../../records/tenant/custom-domains.ts';
import { type DocumentRecord, usualMembers } from '../../../../records/tenant/documents.ts';
import { customDomainWarning } from '../../../../tenant/custom-domain-warnings.ts';
import { type Answer, type Call, callsWith, ok } from '../../call.ts';
import { documentResourceCalls } from '../../document-calls.ts';
import {
  type DocumentDependencies,
  type DocumentResource,
  documentOf,
  documentsOf,
  documentView,
} from '../../document-resource.ts';
import { idOf } from '../../ids.ts';
import { apiError } from '../../management-errors.ts';
import { metadataTexts, searchQuery } from '../../management-fields.ts';
import { checkedBy, notFound } from '../../resource.ts';
import { recordFilter } from '../../search/records.ts';
import { deeplyMerged } from '../../section.ts';

export interface CustomDomainDependencies extends DocumentDependencies {
  dns: Dns;
  baseUrl: string;
}

const members = {
  custom_client_ip_header: z.string().max(64).nullable(),
  tls_policy: z.enum(['recommended']),
  domain_metadata: metadataTexts(10),
  relying_party_identifier: z.string().max(255).nullable(),
};
const settableMembers = z.strictObject(members).partial();

// docs/understand/decisions/clients-keys.md#a-custom-domain-is-verified-by-a-txt-record-below-it
/**
 * The record is at a name below the domain: the domain itself may be a CNAME, which excludes other records (RFC 1034
 * §3.6.2).
 */
const challengeName = (domain: unknown) => `_gatehouse-challenge.${String(domain)}`;

/** Members that domains can be searched and sorted by. */
const SEARCH_FIELDS = ['domain', 'status', 'type', 'primary', 'custom_domain_id'];

const resource: DocumentResource = {
  kind: 'custom-domain',
  path: '/custom-domains',
  name: 'custom domain',
  noun: 'custom_domains',
  idMember: 'custom_domain_id',
  newId: (random) => idOf('cd', random),
  createBody: settableMembers.extend({
    domain: z.hostname(),
    type: z.enum(['auth0_managed_certs', 'self_managed_certs']),
    verification_method: z.enum(['txt']).optional(),
  }),
  patchBody: settableMembers,
  defaults: usualMembers['custom-domain'],
  generated: ({ random }, { domain }) => ({
    verification: {
      methods: [
        {
          name: 'txt',
          domain: challengeName(domain),
          record: `gatehouse-domain-verification=${random(24).toString('base64url')}`,
        },
      ],
    },
  }),
  // Members of the metadata that the body leaves out are kept.
  change: (before, changes) => deeplyMerged(before, changes) as Record<string, unknown>,
  validate: ({ domain_metadata }) => {
    checkedBy(members.domain_metadata.optional(), domain_metadata);
  },
  uniqueMember: 'domain',
  list: { key: 'custom_domains' },
  filters: { ...searchQuery(1024), sort: z.string().max(255).optional() },
  matches: (item, { q }) => typeof q !== 'string' || recordFilter(q, SEARCH_FIELDS)(item),
  sortable: SEARCH_FIELDS,
  unpaged: 'bare unless taken',
  hidden: ['api_key_hashes'],
  constantMembers: { is_default: false },
  missing: notFound('The custom domain does not exist', 'custom_domain_not_found'),
  taken: 'The specified custom domain already exists.',
  hasDates: false,
};

type Body = Readonly<Record<string, unknown>>;

function challengeOf({ verification }: Body): { domain: string; record: string } | undefined {
  const { methods = [] } = (verification ?? {}) as { methods?: { domain?: unknown; record?: unknown }[] };
  const [{ domain, record } = {}] = methods;
  return typeof domain === 'string' && typeof record === 'string' ? { domain, record } : undefined;
}

async function isVerified({ dns }: CustomDomainDependencies, body: Body): Promise<boolean> {
  const challenge = challengeOf(body);
  return challenge !== undefined && (await dns.texts(challenge.domain)).includes(challenge.record);
}

/** Adds a TXT record to verify to a domain that comes from a tenant file. */
async function withChallenge(
  deps: CustomDomainDependencies,
  { id }: Pick<DocumentRecord, 'id'>,
): Promise<Answer> {
  const after = await deps.store.collection('documents').update(id, (current) => ({
    ...current,
    body: { ...current.body, ...resource.generated?.(deps, current.body) },
    updated_at: deps.now(),
  }));
  if (after === undefined) throw resource.missing();
  return ok(documentView(resource, after));
}

const hashesOf = ({ api_key_hashes: hashes }: Body): string[] =>
  Array.isArray(hashes) ? hashes.map(String) : [];

/** Number of valid keys of a domain during a rotation. */
const MAX_KEYS = 2;

/**
 * Adds an API key to a domain atomically; beyond two keys, the oldest becomes invalid.
 * @param isAllowed whether the domain gets a key, given its stored body
 * @returns the domain, with the key, which is never returned again.
 */
async function issueKey(
  { store, random, now, baseUrl }: CustomDomainDependencies,
  { id }: Pick<DocumentRecord, 'id'>,
  isAllowed: (body: Body) => boolean,
): Promise<Answer> {
  const key = random(32).toString('base64url');
  let isIssued = false;
  const after = await store.collection('documents').update(id, (current) => {
    // Checked again: of two concurrent requests, only one creates the first key.
    isIssued = isAllowed(current.body);
    if (!isIssued) return current;
    const hashes = [...hashesOf(current.body), apiKeyHash(key)].slice(-MAX_KEYS);
    const body = { ...current.body, status: 'ready', api_key_hashes: hashes };
    return { ...current, body, updated_at: now() };
  });
  if (after === undefined) throw resource.missing();
  const view = documentView(resource, after);
  if (!isIssued) return ok(view);
  const response = { ...view, origin_domain_name: new URL(baseUrl).hostname, cname_api_key: key };
  return ok(response, { before: view, after: view });
}

const isSelfManaged = ({ type }: Body) => type !== 'auth0_managed_certs';

const call = callsWith<CustomDomainDependencies>();

const verify = call({
  method: 'POST',
  path: '/custom-domains/:id/verify',
  scopes: ['create:custom_domains'],
  summary: 'Verify a custom domain',
  handle: async (deps, { params }) => {
    const found = await documentOf(deps.store, resource, params.id);
    const { body } = found;
    if (body.status !== 'ready' && challengeOf(body)?.domain !== challengeName(body.domain))
      return withChallenge(deps, found);
    if (body.status === 'ready' || !(await isVerified(deps, body))) return ok(documentView(resource, found));
    // The record that was looked up must still be the stored one.
    const isSame = (current: Body) =>
      current.status !== 'ready' && challengeOf(current)?.record === challengeOf(body)?.record;
    if (isSelfManaged(body)) return issueKey(deps, found, isSame);
    const after = await deps.store
      .collection('documents')
      .update(found.id, (current) =>
        isSame(current.body)
          ? { ...current, body: { ...current.body, status: 'ready' }, updated_at: deps.now() }
          : current,
      );
    if (after === undefined) throw resource.missing();
    return ok(documentView(resource, after));
  },
});

const rotate = call({
  method: 'POST',
  path: '/custom-domains/:id/rotate-api-key',
  scopes: ['update:custom_domains'],
  summary: 'Rotate the API key of a custom domain; the previous key stays valid until the next rotation',
  handle: async (deps, { params }) => {
    const found = await documentOf(deps.store, resource, params.id);
    const isAllowed = (body: Body) => body.status === 'ready' && isSelfManaged(body);
    if (!isAllowed(found.body))
      throw apiError(
        400,
        'Only a verified domain with certificates of its own has an API key',
        'invalid_body',
      );
    return issueKey(deps, found, isAllowed);
  },
});

const DEFAULT = '/custom-domains/default';

/** Returns the domain that was set as the default one, or the host of the server. */
async function defaultDomain({ store, baseUrl }: CustomDomainDependencies): Promise<unknown> {
  const domains = await documentsOf(store, resource.kind);
  const chosen = domains.find(({ body }) => body.is_default === true);
  return chosen === undefined ? { domain: new URL(baseUrl).host } : documentView(resource, chosen);
}

const readDefault = call({
  method: 'GET',
  path: DEFAULT,
  scopes: ['read:custom_domains'],
  summary: 'Get the default domain: the host of the server, unless another was set',
  handle: async (deps) => ok(await defaultDomain(deps)),
});

const setDefault = call({
  method: 'PATCH',
  path: DEFAULT,
  scopes: ['update:custom_domains'],
  summary: 'Set the default domain. Mails and tickets lead to the host of the server all the same',
  body: z.strictObject({ domain: z.string().max(255) }),
  handle: async (deps, { body }) => {
    const domain = body.domain.toLowerCase();
    const { host } = new URL(deps.baseUrl);
    const all = await documentsOf(deps.store, resource.kind);
    const isChosen = (one: Body) => String(one.domain).toLowerCase() === domain && one.status === 'ready';
    if (domain !== host && !all.some((one) => isChosen(one.body)))
      throw apiError(400, 'The domain must be verified before it can be set as default.', 'invalid_body');
    const before = await defaultDomain(deps);
    for (const { id, body: stored } of all) {
      if ((stored.is_default === true) === isChosen(stored)) continue;
      await deps.store.collection('documents').update(id, (current) => ({
        ...current,
        body: { ...current.body, is_default: isChosen(current.body) },
        updated_at: deps.now(),
      }));
    }
    const after = await defaultDomain(deps);
    const warning = `mails and tickets lead to ${host}, not to the default domain ${domain}`;
    return ok(after, { before, after, warnings: domain === host ? [] : [warning] });
  },
});

/** The member of an answer that says what the domain is not good for. Answers to GET lack it: tools write them back. */
const WARNING = 'warning';

/** Returns a call whose answer, if it writes a domain, has a warning about it. */
function warning(one: Call<CustomDomainDependencies>): Call<CustomDomainDependencies> {
  if (one.method !== 'POST' && one.method !== 'PATCH') return one;
  return {
    ...one,
    handle: async (deps, request) => {
      const answer = await one.handle(deps, request);
      const body = answer.body as Body;
      const text = customDomainWarning(body.domain, deps.baseUrl);
      if (text === undefined) return answer;
      return { ...answer, body: { ...body, [WARNING]: text }, warnings: [text] };
    },
  };
}

export const customDomainCalls: Call<CustomDomainDependencies>[] = [
  readDefault,
  setDefault,
  ...[...documentResourceCalls(resource), verify, rotate].map(warning),
];
