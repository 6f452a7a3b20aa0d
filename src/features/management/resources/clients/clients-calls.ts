// `/clients`: the clients (applications).
import { z } from 'zod';
import {
  authenticationMethod,
  isCredentialMethod,
} from '../../../../records/clients/client-authentication.ts';
import { clientSchema, TRY_LOGIN } from '../../../../records/clients/clients.ts';
import {
  isClientUrl,
  isRegistrationId,
  isStrangerId,
  type RegistrationRecord,
} from '../../../../records/clients/registrations.ts';
import { isSelfRegistered } from '../../../../records/clients/third-parties.ts';
import type { Client, Records } from '../../../../records/collections.ts';
import { bindingWarnings } from '../../../../records/connections/samlp.ts';
import { pageSchema } from '../../../../records/tenant/pages.ts';
import type { ClientRecord } from '../../../../records/tenant/tenant.ts';
import type { Background } from '../../../../runtime/background.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import { listAll } from '../../../../store/list-all.ts';
import { defaultGrantTypes } from '../../../../tenant/declared-records.ts';
import { type Call, type Caller, callsWith, ok } from '../../call.ts';
import { requestObjectKeys } from '../../client-keys.ts';
import { clientRemovals, removeGrantedTo } from '../../client-removal.ts';
import { letters } from '../../ids.ts';
import { cursorId, cursorOf, type ListSource } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { flag, searchQuery } from '../../management-fields.ts';
import { checkedBy, conflict, merged, notFound, resourceCalls, shown } from '../../resource.ts';
import type { Resource } from '../../resource-declaration.ts';
import { isObject, type SectionDependencies, section } from '../../section.ts';
import { grantsOf } from '../organizations/client-grants.ts';
import { currentCertificates } from '../tenant/signing-keys.ts';
import {
  applyKeys,
  applyRequestKeys,
  credentialIds,
  KEY_SCOPES,
  KEYS,
  refuseUnrequestedPublic,
  withoutVaultKeys,
} from './client-authentication-calls.ts';
import { clientMetadata, createClientBody, patchClientBody } from './client-bodies.ts';
import { isOfType, registrationsAfter } from './registrations-list.ts';

export interface ClientsDependencies {
  store: Store;
  background: Background;
  random: Random;
  /** ISO 8601. */
  now(): string;
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
    external_metadata_type: z.enum(['dcr', 'cimd']).optional(),
    ...searchQuery(1024),
  },
  matches: (client, query) =>
    (query.is_global === undefined || (client.id === GLOBAL_CLIENT) === query.is_global) &&
    (query.is_first_party === undefined || client.is_first_party === query.is_first_party) &&
    (typeof query.app_type !== 'string' || query.app_type.split(',').includes(client.app_type ?? '')) &&
    (query.external_client_id === undefined || client.external_client_id === query.external_client_id) &&
    (query.external_metadata_type === undefined ||
      client.external_metadata_type === query.external_metadata_type),
  relatedFilter: ({ store }, { q }) => grantedBy(store, q as string | undefined),
  source: registeredSource,
  builtIn: async (deps, query) => [await globalClient(deps), ...(await registered(deps, query))],
  find: async (deps, id) =>
    id === GLOBAL_CLIENT
      ? globalClient(deps)
      : ((await deps.store.collection('clients').get(id)) ?? registeredClient(deps, id)),
  changeBuiltIn: async (deps, client, body) => {
    const { id } = client;
    if (id === GLOBAL_CLIENT) return changeGlobalClient(deps, body);
    if (isClientUrl(id) && isSelfRegistered(client))
      throw apiError(400, 'Its document says what it is: register it to change it', 'invalid_body');
    return isRegistrationId(id) ? changeRegistered(deps, id, body) : undefined;
  },
  beforeRemoval: async (deps, { id }) => {
    await clientRemovals.record(deps, id);
    if (!isStrangerId(id) || !(await deps.store.collection('registrations').delete(id))) return;
    // It is in no collection that the removal goes on with.
    endGrantedTo(deps, id);
  },
  afterRemoval: async (deps, { id }) => endGrantedTo(deps, id),
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
    const isThirdParty = body.is_first_party === false;
    // As with the hosted service, whose tools know third parties by it.
    const client_id = isThirdParty ? `tpc_${letters(28, random)}` : letters(32, random);
    const defaults = isThirdParty ? { ...DEFAULTS, third_party_security_mode: 'strict' } : { ...DEFAULTS };
    const withKeys = applyKeys(undefined, merged(defaults, body), { random, now });
    const withRequestKeys = applyRequestKeys(undefined, withKeys, { random, now });
    const client = checkedBy(clientSchema, { ...withRequestKeys, client_id });
    refuseUnrequestedPublic(undefined, client, body);
    return withDefaults(client, () => newSecret(random));
  },
  change: ({ random, now }, client, body) => {
    const { id: _, ...before } = client;
    const { third_party_security_mode: mode } = before;
    if (
      mode != null &&
      body.third_party_security_mode !== undefined &&
      body.third_party_security_mode !== mode
    )
      throw apiError(400, 'third_party_security_mode cannot be changed', 'invalid_body');
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

const endGrantedTo = ({ store, background }: ClientsDependencies, clientId: string) =>
  background.run('the removal of what an application was granted', () => removeGrantedTo(store, clientId));

// Applications of strangers, which are not in the collection of the others.

/** How many of them a list has: those that registered last. */
const MAX_LISTED = 1_000;

/**
 * Returns those of a list that asks for third parties, or for what registered itself.
 * @throws AuthError 400 where it selects among more than are read for a request: the answer would lack some that it asks for.
 */
async function registered(
  deps: ClientsDependencies,
  query: Readonly<Record<string, unknown>>,
): Promise<Client[]> {
  const { is_first_party: isFirst, external_metadata_type: type, external_client_id: externalId } = query;
  if (type === undefined && isFirst !== false) return [];
  if (typeof externalId === 'string') {
    // That of an application that a document describes is its client_id.
    const found = await registeredClient(deps, externalId);
    return found === undefined ? [] : [found];
  }
  const sort = { field: 'created_at', descending: true } as const;
  const where = type === 'dcr' || type === 'cimd' ? isOfType(type) : undefined;
  const { records } = await deps.store
    .collection('registrations')
    .list({ sort, limit: MAX_LISTED + 1, ...(where && { where }) });
  const selects = query.app_type !== undefined || query.q !== undefined;
  if (selects && records.length > MAX_LISTED)
    throw apiError(
      400,
      `More than ${MAX_LISTED} applications registered themselves: list them by external_metadata_type, without app_type and q`,
      'invalid_query_string',
    );
  return records.slice(0, MAX_LISTED).map(({ client }) => client as Client);
}

/** Returns the list of those alone, as long as it may be; undefined for one that selects among them, or has others. */
async function registeredSource(
  { store }: ClientsDependencies,
  query: Readonly<Record<string, unknown>>,
): Promise<ListSource | undefined> {
  const { external_metadata_type: type, app_type, external_client_id, q, is_global, is_first_party } = query;
  const isWhole = [app_type, external_client_id, q].every((one) => one === undefined);
  if ((type !== 'dcr' && type !== 'cimd') || !isWhole || is_global === true || is_first_party === true)
    return undefined;
  const declared = await listAll(store.collection('clients'));
  if (declared.some((client) => client.external_metadata_type === type)) return undefined;
  return {
    page: async ({ page, perPage }) => {
      const sort = { field: 'created_at', descending: true } as const;
      const { records, total = 0 } = await store
        .collection('registrations')
        .list({ where: isOfType(type), sort, page, limit: perPage, total: true });
      return { items: records.map(({ client }) => client), total };
    },
    after: async ({ cursor, take }) => {
      const after = cursor === undefined ? undefined : cursorId(cursor);
      const { records, next } = await registrationsAfter(store, { after, take, type });
      return {
        items: records.map(({ client }) => client),
        next: next === undefined ? undefined : cursorOf(next),
      };
    },
  };
}

async function registeredClient({ store }: ClientsDependencies, id: string): Promise<Client | undefined> {
  if (!isStrangerId(id)) return undefined;
  return (await store.collection('registrations').get(id))?.client as Client | undefined;
}

async function changeRegistered(
  deps: ClientsDependencies,
  id: string,
  body: Record<string, unknown>,
): Promise<Client | undefined> {
  const changed = await deps.store.collection('registrations').update(id, (current) => {
    const { client_secret: secret, ...client } = resource.change(deps, current.client as Client, body);
    const isPublic = current.client.client_secret === undefined;
    return {
      ...current,
      client: { ...client, id, ...(!isPublic && { client_secret: secret }) },
    } as RegistrationRecord;
  });
  return changed?.client as Client | undefined;
}

const call = callsWith<ClientsDependencies>();

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

// Profiles that a client refers to. They are stored for tools, and have no effect.

/** Checks that the profiles exist that a client's `my_organization_configuration` names. @throws AuthError 400 */
async function requireProfiles(store: Store, asked: unknown): Promise<void> {
  if (!isObject(asked)) return;
  for (const kind of ['connection-profiles', 'user-attribute-profiles']) {
    const member = `${kind.slice(0, -1).replaceAll('-', '_')}_id`;
    const id = asked[member];
    if (id === undefined || id === null) continue;
    const found = await store.collection('documents').get(String(id));
    if (found?.kind !== kind)
      throw apiError(400, `my_organization_configuration.${member} names nothing`, 'invalid_body');
  }
}

// The parameter `q` of `GET /clients`, which selects clients by their client grants. As at the hosted service, it
// supports nothing else.

const QUERY = /^client_grant\.(?:organization_id:"?(org_\w+)"?|allow_any_organization:true)$/;

/**
 * Returns a test for the clients that a query selects: those with a grant of the organization, or with a grant that
 * any organization may use.
 * @returns undefined if there is no query
 * @throws AuthError 400 for any other query
 */
async function grantedBy(
  store: Store,
  q: string | undefined,
): Promise<((client: Client) => boolean) | undefined> {
  if (q === undefined) return undefined;
  const result = QUERY.exec(q);
  if (result === null)
    throw apiError(
      400,
      'The query (q) must be client_grant.organization_id:<id> or client_grant.allow_any_organization:true',
      'invalid_query_string',
    );
  const [, organizationId] = result;
  const organization =
    organizationId === undefined ? undefined : await store.collection('organizations').get(organizationId);
  const grantIds = organization === undefined ? [] : grantsOf(organization);
  const grants = (await listAll(store.collection('clientGrants'))).filter((grant) =>
    organizationId === undefined ? grant.allow_any_organization === true : grantIds.includes(grant.id),
  );
  const clients = new Set(grants.map(({ client_id }) => client_id));
  return ({ client_id }) => clients.has(client_id);
}

// The "global" client. At the hosted service, the tenant's customized login page is a member of it, and tools look
// for it there. Here the page is in the section `pages`, and this client is a view of it.

/** No other client has this id: generated ones are 32 letters and digits. */
const GLOBAL_CLIENT = 'gatehouse-all-applications';

const pages = z.array(pageSchema);

async function globalClient(deps: SectionDependencies): Promise<Client> {
  const page = (await section('pages', pages).read(deps))?.find(({ name }) => name === 'login');
  return {
    ...clientSchema.parse({ client_id: GLOBAL_CLIENT, name: 'All Applications', grant_types: [] }),
    id: GLOBAL_CLIENT,
    global: true,
    ...(page === undefined
      ? { custom_login_page_on: false }
      : { custom_login_page: page.html, custom_login_page_on: page.enabled ?? true }),
  };
}

/** Changes the tenant's login page; nothing else of this client can be changed. */
async function changeGlobalClient(
  deps: SectionDependencies,
  { custom_login_page: html, custom_login_page_on: enabled }: Readonly<Record<string, unknown>>,
): Promise<Client> {
  await section('pages', pages).change(deps, (current = []) => {
    const page = current.find(({ name }) => name === 'login');
    const changed = {
      ...page,
      name: 'login',
      ...(html === undefined ? {} : { html: html ?? '' }),
      ...(enabled === undefined ? {} : { enabled: enabled ?? true }),
    };
    return [...current.filter((one) => one !== page), changed];
  });
  return globalClient(deps);
}

// A client as the Management API shows it.

/** Members of a new client that the body does not set, and of a client that came by another way. */
const DEFAULTS = {
  is_first_party: true,
  oidc_conformant: false,
  sso_disabled: false,
  cross_origin_authentication: false,
  custom_login_page_on: true,
} as const;

/** Members of `session_transfer` that apply if it does not have them. */
const TRANSFER_DEFAULTS = {
  can_create_session_transfer_token: false,
  enforce_cascade_revocation: true,
  allowed_authentication_methods: [],
  enforce_device_binding: 'ip',
  allow_refresh_token: false,
  enforce_online_refresh_tokens: true,
};

// docs/understand/decisions/management-api.md#responses-contain-what-applies-though-it-was-not-set
/**
 * Returns members that apply though the client does not have them. Tools compare them with what they would set; a
 * missing one would be a change in each of their plans.
 */
function inForce({
  refresh_token: refresh,
  session_transfer: transfer,
  oidc_logout: logout,
}: Client): object {
  const isEndless = refresh?.expiration_type === 'non-expiring';
  return {
    ...(refresh && {
      refresh_token: {
        infinite_token_lifetime: isEndless,
        infinite_idle_token_lifetime: isEndless,
        ...refresh,
      },
    }),
    ...(transfer && { session_transfer: { ...TRANSFER_DEFAULTS, ...transfer } }),
    ...(logout && { oidc_logout: logoutView(logout) }),
  };
}

/** Without the selected initiators where all are meant. */
function logoutView({
  backchannel_logout_initiators: initiators,
  ...logout
}: NonNullable<Client['oidc_logout']>) {
  const { selected_initiators: _, ...shown } = initiators ?? {};
  return {
    ...logout,
    ...(initiators && { backchannel_logout_initiators: shown.mode === 'all' ? shown : initiators }),
  };
}

function clientView(client: Client, caller: Pick<Caller, 'scopes'>, tenant: string): object {
  const { id: _, credentials: _waiting, ...members } = client;
  const mayReadKeys = KEY_SCOPES.some((scope) => caller.scopes.has(scope));
  const visible = Object.fromEntries(
    Object.entries(members).filter(([name]) => mayReadKeys || !(KEYS as readonly string[]).includes(name)),
  );
  return {
    tenant,
    global: false,
    ...DEFAULTS,
    is_token_endpoint_ip_header_trusted: false,
    ...visible,
    ...inForce(client),
    callbacks: client.callbacks,
    jwt_configuration: { secret_encoded: false, ...client.jwt_configuration },
    ...('client_authentication_methods' in visible
      ? { client_authentication_methods: credentialIds(client) }
      : {}),
    ...(client.signed_request_object
      ? {
          signed_request_object: {
            ...client.signed_request_object,
            credentials: requestObjectKeys(client).map(({ id }) => ({ id })),
          },
        }
      : {}),
  };
}
