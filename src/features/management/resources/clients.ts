// `/clients`: the clients (applications).
import { z } from 'zod';
import { authenticationMethod, isCredentialMethod } from '../../../records/client-authentication.ts';
import { clientSchema, TRY_LOGIN } from '../../../records/clients.ts';
import type { Client, Records } from '../../../records/collections.ts';
import { bindingWarnings } from '../../../records/samlp.ts';
import type { ClientRecord } from '../../../records/tenant.ts';
import type { Random } from '../../../runtime/random.ts';
import type { Store } from '../../../store/contract.ts';
import { defaultGrantTypes } from '../../../tenant/declared-records.ts';
import { type Call, callsWith, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { flag, searchQuery } from '../fields.ts';
import { letters } from '../ids.ts';
import { checkedBy, conflict, merged, notFound, resourceCalls, shown } from '../resource.ts';
import type { Resource } from '../resource-declaration.ts';
import { isObject } from '../section.ts';
import {
  applyKeys,
  applyRequestKeys,
  refuseUnrequestedPublic,
  withoutVaultKeys,
} from './client-authentication.ts';
import { clientMetadata, createClientBody, patchClientBody } from './client-bodies.ts';
import { requireProfiles } from './client-profiles.ts';
import { grantedBy } from './client-search.ts';
import { clientView, DEFAULTS } from './client-view.ts';
import { changeGlobalClient, GLOBAL_CLIENT, globalClient } from './global-client.ts';
import { currentCertificates } from './signing-keys.ts';

export interface ClientsDependencies {
  store: Store;
  random: Random;
  /** ISO 8601. */
  now(): string;
  /** The tenant's name, a member of each client in responses. */
  tenantName: string;
}

const newSecret = (random: Random): string => random(48).toString('base64url');

/** Returns the record to store: the client with its id, grant types, authentication method and secret. */
export function withDefaults(client: ClientRecord, secret: () => string): Records['clients'] {
  const method = authenticationMethod(client);
  const record: Records['clients'] = {
    ...client,
    id: client.client_id,
    grant_types: client.grant_types ?? defaultGrantTypes(client, method),
  };
  if (isCredentialMethod(method)) return record;
  record.token_endpoint_auth_method = method;
  // Every client has a secret, even if its method does not use it: a later change of the method needs it.
  record.client_secret ??= secret();
  return record;
}

/**
 * Returns a body with the client's metadata merged key by key, as at the hosted service; null removes a key.
 * @throws AuthError 400
 */
function withMetadata(client: Client, body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (!isObject(body.client_metadata)) return { ...body };
  const all = merged({ ...client.client_metadata }, body.client_metadata);
  return { ...body, client_metadata: checkedBy(clientMetadata, all) };
}

/**
 * Members that are merged, not replaced, as at the hosted service: Terraform sends only the changed members of these
 * objects.
 */
const MERGED_MEMBERS = ['jwt_configuration', 'session_transfer', 'mobile', 'native_social_login'];

/** Returns a body in which such objects are complete; null removes a member. */
function withOtherMembers(client: Client, body: Record<string, unknown>): Record<string, unknown> {
  const before = client as Readonly<Record<string, unknown>>;
  const mergedMembers = MERGED_MEMBERS.flatMap((name) => {
    const [current, change] = [before[name], body[name]];
    return isObject(current) && isObject(change) ? [[name, merged({ ...current }, change)]] : [];
  });
  return { ...body, ...Object.fromEntries(mergedMembers) };
}

/** Returns a body that removes `oidc_logout` if it removes the older name of that member. */
function withoutLogout(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return body.oidc_backchannel_logout === null ? { oidc_logout: null, ...body } : { ...body };
}

const resource: Resource<'clients', ClientsDependencies> = {
  collection: 'clients',
  path: '/clients',
  name: 'client',
  noun: 'clients',
  readScopes: ['read:client_keys', 'read:client_credentials', 'read:client_summary'],
  updateScopes: [
    'update:client_keys',
    'update:client_credentials',
    'update:client_token_vault_privileged_access',
  ],
  list: { key: 'clients' },
  filters: {
    is_global: flag.optional(),
    is_first_party: flag.optional(),
    app_type: z.string().max(1024).optional(),
    external_client_id: z.string().max(2048).optional(),
    ...searchQuery(1024),
  },
  matches: (client, query) =>
    (query.is_global === undefined || (client.id === GLOBAL_CLIENT) === query.is_global) &&
    (query.is_first_party === undefined || client.is_first_party === query.is_first_party) &&
    (typeof query.app_type !== 'string' || query.app_type.split(',').includes(client.app_type ?? '')) &&
    (query.external_client_id === undefined || client.external_client_id === query.external_client_id),
  relatedFilter: ({ store }, { q }) => grantedBy(store, q as string | undefined),
  builtIn: async (deps) => [await globalClient(deps)],
  find: async (deps, id) =>
    id === GLOBAL_CLIENT ? globalClient(deps) : deps.store.collection('clients').get(id),
  changeBuiltIn: async (deps, { id }, body) =>
    id === GLOBAL_CLIENT ? changeGlobalClient(deps, body) : undefined,
  orderOf: (client) => `${client.name}\n${client.id}`,
  schema: clientSchema,
  builtInMembers: ['global'],
  createBody: createClientBody,
  patchBody: patchClientBody,
  complete: async ({ store }, body) => {
    await requireProfiles(store, body.my_organization_configuration);
    return body;
  },
  make: async ({ random, now }, body) => {
    const client_id = letters(32, random);
    const withKeys = applyKeys(undefined, merged({ ...DEFAULTS }, body), { random, now });
    const withRequestKeys = applyRequestKeys(undefined, withKeys, { random, now });
    const client = checkedBy(clientSchema, { ...withRequestKeys, client_id });
    refuseUnrequestedPublic(undefined, client, body);
    return withDefaults(client, () => newSecret(random));
  },
  change: ({ random, now }, client, body) => {
    const { id: _, ...before } = client;
    const members = withMetadata(client, withOtherMembers(client, withoutLogout(body)));
    const changed = merged(before, members);
    const withKeys =
      'client_authentication_methods' in body ? applyKeys(client, changed, { random, now }) : changed;
    const withRequestKeys =
      'signed_request_object' in body ? applyRequestKeys(client, withKeys, { random, now }) : withKeys;
    const after = checkedBy(clientSchema, withoutVaultKeys(withRequestKeys));
    refuseUnrequestedPublic(client, after, body);
    return withDefaults(after, () => newSecret(random));
  },
  warnings: ({ name, addons, token_vault_privileged_access: vault }) => [
    ...bindingWarnings(name, addons?.samlp),
    ...(vault == null
      ? []
      : [
          `token_vault_privileged_access of ${name} has no effect: tokens of connected accounts are for their users`,
        ]),
  ],
  view: ({ tenantName }, client, caller) => clientView(client, caller, tenantName),
  related: async ({ store }) => ({ signing_keys: await currentCertificates(store) }),
  missing: notFound('The client does not exist', 'inexistent_client'),
  taken: conflict('A client with the same id already exists'),
  guard: (_deps, { id }) => {
    if (id === TRY_LOGIN || id === GLOBAL_CLIENT)
      throw apiError(403, 'The account is not allowed to perform this operation.');
  },
};

const call = callsWith<ClientsDependencies>();

/** The calls for clients. */
export const clientCalls: Call<ClientsDependencies>[] = [
  ...resourceCalls(resource),
  call({
    method: 'POST',
    path: '/clients/:id/rotate-secret',
    scopes: ['update:client_keys'],
    summary: 'Rotate a client secret',
    handle: async (deps, { params, caller }) => {
      const { store, random } = deps;
      const client = await store
        .collection('clients')
        .update(params.id ?? '', (current) => ({ ...current, client_secret: newSecret(random) }));
      if (client === undefined) throw resource.missing();
      const scopes = new Set([...caller.scopes, 'read:client_keys']);
      return ok(shown(deps, resource, client, { ...caller, scopes }));
    },
  }),
];
