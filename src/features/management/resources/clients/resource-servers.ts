// `/resource-servers`: APIs. A path names one by its id or identifier, which SDKs encode once or twice.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { TOKEN_ALGS } from '../../../../records/base/signing-algs.ts';
import {
  isManagementAudience,
  managementApiSchema,
  resourceServerSchema,
  TRANSACTIONAL,
} from '../../../../records/clients/apis.ts';
import type { ResourceServer } from '../../../../records/collections.ts';
import type { Background } from '../../../../runtime/background.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import { listAll } from '../../../../store/list-all.ts';
import type { Call } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { repeatable } from '../../management-fields.ts';
import type { RecordRemovalDependencies } from '../../pending-removal.ts';
import { apiRemovals, removeClientGrantsOf, removePermissionsOf } from '../../permission-removal.ts';
import { checkedBy, conflict, merged, notFound, resourceCalls } from '../../resource.ts';
import type { Resource } from '../../resource-declaration.ts';
import { section } from '../../section.ts';

export interface ResourceServersDependencies extends RecordRemovalDependencies {
  background: Background;
  random: Random;
  /** The APIs that the server itself defines; they are not in the store. */
  systemApis(): readonly ResourceServer[];
}

const object = z.record(z.string(), z.unknown());
const scope = z.strictObject({
  value: z.string().min(1).max(280),
  description: z.string().max(500).nullish(),
});

const members = {
  name: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[^<>]*$/, 'String does not match pattern ^[^<>]+$'),
  scopes: z.array(scope).max(1000),
  signing_alg: z.enum(TOKEN_ALGS),
  signing_secret: z.string().min(16),
  allow_offline_access: z.boolean(),
  allow_online_access: z.boolean(),
  allow_online_access_with_ephemeral_sessions: z.boolean(),
  authorization_policy: object.describe('Stored for tools: there are no such policies here.'),
  token_lifetime: z.number().int().max(2_592_000),
  token_lifetime_for_web: z.number().int().max(2_592_000),
  skip_consent_for_verifiable_first_party_clients: z.boolean(),
  enforce_policies: z.boolean(),
  token_dialect: z.enum(['access_token', 'access_token_authz', 'rfc9068_profile', 'rfc9068_profile_authz']),
  token_encryption: object,
  consent_policy: z.enum([TRANSACTIONAL]).describe('Whether users are asked for consent at each request.'),
  authorization_details: z.array(object),
  proof_of_possession: object,
  subject_type_authorization: object,
  allow_anonymous_access: z
    .boolean()
    .describe(
      'Whether the API accepts tokens of anonymous sessions, which also need a client grant for anonymous users.',
    ),
  verification_location: z.string().max(1024),
};

const settableMembers = z.strictObject(
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, schema.nullable().optional()])),
);
const createBody = settableMembers.extend({ identifier: z.string().min(1).max(600) });

const texts = repeatable.transform((value) => [value].flat());

/** Members of a new API that the body does not set. In a tenant file, consent is skipped unless it says otherwise. */
const DEFAULTS = { skip_consent_for_verifiable_first_party_clients: false };

/** Who may use an API without a client grant, if the API does not say. */
const SUBJECT_TYPES_ALLOWED = { client: { policy: 'require_client_grant' }, user: { policy: 'allow_all' } };

const taken = conflict(
  'A resource server with the same identifier already exists.',
  'resource_server_exists',
);

const managementSettings = section('managementApi', managementApiSchema);

const resource: Resource<'resourceServers', ResourceServersDependencies> = {
  collection: 'resourceServers',
  path: '/resource-servers',
  name: 'resource server',
  noun: 'resource_servers',
  list: { key: 'resource_servers' },
  filters: { identifiers: texts.refine((all) => all.length <= 10, 'At most 10').optional() },
  matches: (api, { identifiers }) => !Array.isArray(identifiers) || identifiers.includes(api.identifier),
  builtIn: ({ systemApis }) => systemApis(),
  // The deploy tool sends the settings of the My Account API that it has exported with every import.
  // docs/understand/decisions/management-api.md#the-deploy-tool-exports-the-my-account-api
  changeBuiltIn: async (deps, api, body) => {
    if (!isSystemApi(deps.systemApis(), api)) return undefined;
    const changed = merged(api, body);
    if (isDeepStrictEqual(changed, api)) return api;
    const isSettable = Object.entries(body).every(
      ([name, value]) => name in managementApiSchema.shape && value !== null,
    );
    if (!isSettable || !isManagementAudience(api.identifier)) return undefined;
    const { after } = await managementSettings.change(deps, (current) => ({ ...current, ...body }));
    return merged(api, after);
  },
  orderOf: (api) => `${api.name}\n${api.id}`,
  schema: resourceServerSchema,
  builtInMembers: ['is_system'],
  createBody,
  patchBody: settableMembers,
  make: async ({ random, systemApis }, body) => {
    const identifier = String(body.identifier);
    if (systemApis().some((api) => api.identifier === identifier)) throw taken();
    const api = checkedBy(
      resourceServerSchema,
      withSecret(random, merged({ ...DEFAULTS, name: identifier }, body)),
    );
    return { ...api, id: random(12).toString('hex') };
  },
  change: ({ random }, api, body) => {
    const { id, identifier } = api;
    const changed = merged(api, body);
    return { ...checkedBy(resourceServerSchema, withSecret(random, { ...changed, identifier })), id };
  },
  warnings: ({ name, authorization_policy: policy }) =>
    policy == null
      ? []
      : [`authorization_policy of ${name} is not enforced: there are no such policies here`],
  // The deploy tool sends back what it reads of the APIs of this server, which cannot be set.
  view: (_deps, api) =>
    api.is_system === true
      ? api
      : { ...api, subject_type_authorization: api.subject_type_authorization ?? SUBJECT_TYPES_ALLOWED },
  related: async ({ store }, { identifier }) => {
    const clients = await listAll(store.collection('clients'));
    const linked = clients.find((client) => client.resource_server_identifier === identifier);
    // docs/understand/decisions/management-api.md#the-application-that-an-api-is-linked-to-is-returned-when-one-api-is-read
    return linked === undefined ? {} : { client_id: linked.client_id };
  },
  find: async ({ store, systemApis }, id) => {
    const apis = store.collection('resourceServers');
    for (const name of new Set([id, decoded(id)])) {
      const found =
        (await apis.get(name)) ??
        (await apis.findBy('identifier', name))[0] ??
        systemApis().find((api) => api.id === name || api.identifier === name);
      if (found !== undefined) return found;
    }
    return undefined;
  },
  missing: notFound('The resource server does not exist', 'inexistent_resource_server'),
  taken,
  guard: ({ systemApis }, api) => {
    if (isSystemApi(systemApis(), api)) {
      throw apiError(400, 'System resource servers cannot be patched');
    }
  },
  beforeRemoval: (deps, { identifier }) => apiRemovals.record(deps, identifier),
  afterRemoval: async ({ store, background }, { identifier }) => {
    await removeClientGrantsOf(store, identifier);
    background.run('the removal of the permissions of an API', () => removePermissionsOf(store, identifier));
  },
};

function isSystemApi(systemApis: readonly ResourceServer[], { id }: { id: string }): boolean {
  return systemApis.some((one) => one.id === id);
}

/** Adds a secret to an API that signs its tokens with one, if the body has none. */
function withSecret(random: Random, api: Record<string, unknown>): Record<string, unknown> {
  return api.signing_alg === 'HS256' && api.signing_secret === undefined
    ? { ...api, signing_secret: random(32).toString('base64url') }
    : api;
}

/** Returns a path segment with one more level of encoding removed, as far as that is possible. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const resourceServerCalls: Call<ResourceServersDependencies>[] = resourceCalls(resource);
