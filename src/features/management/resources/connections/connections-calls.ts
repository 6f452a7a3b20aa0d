// `/connections`: the connections.
import { z } from 'zod';
import type { Connection } from '../../../../records/collections.ts';
import { connectionSchema, DATABASE } from '../../../../records/connections/connections.ts';
import type { Background } from '../../../../runtime/background.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import { listAll } from '../../../../store/list-all.ts';
import { scriptWarnings } from '../../../../tenant/database-warnings.ts';
import type { Users } from '../../../../users/users.ts';
import { type Call, callsWith, noContent } from '../../call.ts';
import { connectionRemovals, type RemovalDependencies, removeUsersOf } from '../../connection-removal.ts';
import { idOf } from '../../ids.ts';
import { apiError } from '../../management-errors.ts';
import { repeatable } from '../../management-fields.ts';
import { conflict, merged, notFound, resourceCalls } from '../../resource.ts';
import type { Resource } from '../../resource-declaration.ts';
import { isObject } from '../../section.ts';
import {
  checked,
  connectionMembers,
  createBody,
  optionsOf,
  refuseMetadata,
  textsOf,
} from './connection-body.ts';
import { type ConnectionKeysDependencies, makeNeededKeys } from './connection-keys.ts';
import { OLDER_POLICY, refuseLateNonUnique } from './database-attributes.ts';
import { directoryProvisioningKey } from './directory-provisioning.ts';
import { removeScim } from './scim.ts';

export interface ConnectionsDependencies extends RemovalDependencies, ConnectionKeysDependencies {
  background: Background;
  random: Random;
  users: Pick<Users, 'findInConnection'>;
  /**
   * Returns the options of a connection completed from the provider's metadata, if they name any (SAML).
   * @throws AuthError if the metadata cannot be fetched or read.
   */
  importMetadata(strategy: string, options: Record<string, unknown>): Promise<Record<string, unknown>>;
  providers: {
    /**
     * Checks a connection's provider in the background; a provider that does not answer is a warning in the server's
     * log.
     */
    check(connection: Pick<Connection, 'name' | 'strategy' | 'options'>): void;
    /** Checks the provider now. @returns why logins fail with the connection; undefined if no fault is known. */
    faultOf(connection: Connection): Promise<{ message: string } | undefined>;
  };
}

const missing = notFound('The connection does not exist', 'inexistent_connection');

const resource: Resource<'connections', ConnectionsDependencies> = {
  collection: 'connections',
  path: '/connections',
  name: 'connection',
  noun: 'connections',
  list: { key: 'connections', perPage: 100 },
  // As recorded. The Terraform provider takes the id of an answer with `fields=strategy,name` for the id of its resource.
  always: ['id', 'is_domain_connection'],
  filters: {
    name: z.string().max(128).optional(),
    strategy: repeatable.optional(),
    domain_alias: z.string().optional(),
  },
  matches: (connection, { name, strategy, domain_alias: domain }) =>
    (name === undefined || connection.name === name) &&
    (domain === undefined || textsOf(connection.options.domain_aliases).includes(String(domain))) &&
    (strategy === undefined || textsOf(strategy).includes(connection.strategy)),
  schema: connectionSchema,
  createBody,
  patchBody: z.strictObject(connectionMembers),
  complete: async ({ importMetadata }, body, before) => {
    const strategy = String(before?.strategy ?? body.strategy);
    const { options } = body as { options?: Record<string, unknown> | null };
    if (options == null) return body;
    const imported = await importMetadata(strategy, options).catch(refuseMetadata);
    return imported === options ? body : { ...body, options: imported };
  },
  make: async ({ random }, body) => {
    const id = idOf('con', random);
    const { options, ...rest } = body;
    const realms = [String(body.name)];
    return {
      ...checked({
        realms,
        ...merged({}, rest),
        options: optionsOf(undefined, (options ?? {}) as object as Record<string, unknown>),
        id,
      }),
      id,
    };
  },
  change: (_deps, connection, body) => {
    const { options, ...rest } = body;
    const { display_name: _, ...before } = connection;
    if (connection.strategy === DATABASE && options != null)
      refuseLateNonUnique(connection.options, options as Record<string, unknown>);
    return {
      // If the body removes `display_name`, the schema's default applies: the name.
      ...checked(
        {
          ...merged(before, rest),
          options:
            options == null ? connection.options : optionsOf(connection, options as Record<string, unknown>),
        },
        options != null,
      ),
      id: connection.id,
    };
  },
  check: async ({ store, providers }, connection) => {
    const { cross_app_access_requesting_app: requesting } = connection as { [member: string]: unknown };
    if (connection.strategy === DATABASE && isObject(requesting) && requesting.active === true)
      throw apiError(
        400,
        'Cross App Access Requesting App is not supported for this connection.',
        'operation_not_supported',
      );
    for (const client of connection.enabled_clients) await requireClient(store, client);
    const others = (await listAll(store.collection('connections'))).filter(({ id }) => id !== connection.id);
    if (others.some((other) => other.realms?.some((realm) => connection.realms?.includes(realm)))) {
      if (!others.some(({ name }) => name === connection.name)) {
        throw apiError(409, 'There is already another connection with some realms from "realms" parameter');
      }
    }
    providers.check(connection);
  },
  warnings: ({ name, strategy, options }) => (strategy === DATABASE ? scriptWarnings({ name, options }) : []),
  afterWrite: makeNeededKeys,
  view: (_deps, connection) => connectionView(connection),
  missing,
  taken: conflict('A connection with the same name already exists', 'conflict'),
  statuses: { remove: 202 },
  // docs/understand/decisions/management-api.md#deleting-a-connection-deletes-its-users-in-the-background
  removedBody: ({ now }) => ({ deleted_at: now() }),
  beforeRemoval: async (deps, { id, name }) => {
    await connectionRemovals.record(deps, name);
    // Here, not after the removal: a tenant file makes the same id from the same name, with the keys of SCIM.
    await removeConnectionParts(deps.store, id);
  },
  afterRemoval: async (deps, { id, name }) => {
    await removeConnectionParts(deps.store, id);
    deps.background.run('the removal of the users of a connection', () => removeUsersOf(deps, name));
  },
};

/** Deletes the records that belong to one connection alone. @param id the connection's. */
export async function removeConnectionParts(store: Store, id: string): Promise<void> {
  await removeScim(store, id);
  await store.collection('connectionKeys').deleteBy('connection', id);
  await store.collection('connectedAccounts').deleteBy('connection', id);
  await store.collection('documents').delete(directoryProvisioningKey(id));
}

/**
 * Returns a connection as the API shows it. Empty options get a member, because tools take options without members
 * for options that they may not read.
 */
export function connectionView(connection: Connection): object {
  return {
    show_as_button: false,
    authentication: { active: true },
    connected_accounts: { active: false },
    realms: [connection.name],
    ...connection,
    options: optionsView(connection),
  };
}

/** Checks that a client exists. @throws AuthError 404 */
export async function requireClient(store: Store, clientId: string): Promise<void> {
  if ((await store.collection('clients').get(clientId)) !== undefined) return;
  throw apiError(404, 'The client does not exist', 'inexistent_client');
}

/** Returns the connection that a path names. @throws AuthError 404 */
export async function connectionOf({ store }: { store: Store }, id = ''): Promise<Connection> {
  const found = await store.collection('connections').get(id);
  if (found === undefined) throw missing();
  return found;
}

const call = callsWith<ConnectionsDependencies>();

export const connectionCalls: Call<ConnectionsDependencies>[] = [
  ...resourceCalls(resource),
  call({
    method: 'GET',
    path: '/connections/:id/status',
    scopes: ['read:connections'],
    summary: 'Check the status of a connection',
    handle: async (deps, { params }) => {
      const fault = await deps.providers.faultOf(await connectionOf(deps, params.id));
      // The hosted service returns this for a directory whose connector is offline.
      if (fault !== undefined) throw apiError(404, fault.message, 'connection_offline');
      return { status: 200 };
    },
  }),
  call({
    method: 'DELETE',
    path: '/connections/:id/users',
    scopes: ['delete:users'],
    summary: 'Delete a user of a connection',
    query: z.strictObject({ email: z.string().max(320) }),
    handle: async (deps, { params, query }) => {
      const user = await deps.users.findInConnection(await connectionOf(deps, params.id), query.email);
      if (user !== undefined) await deps.removeUser(user.id);
      return noContent();
    },
  }),
];

// The options of connections as the API shows them: without secrets, and with the members that apply though they were not
// set. Tools compare those with what they would set; a missing one would be a change in each of their plans.

/** What holds for a database that does not say otherwise. `mfa` and `strategy_version` mean nothing here. */
const DATABASE_DEFAULTS = {
  // The deploy tool sets this option on each database without it.
  disable_self_service_change_password: false,
  mfa: { active: true, return_enroll_settings: true },
  strategy_version: 2,
  authentication_methods: {
    password: { enabled: true, api_behavior: 'required', signup_behavior: 'allow' },
    passkey: { enabled: false },
    email_otp: { enabled: false },
    phone_otp: { enabled: false },
  },
  passkey_options: {
    challenge_ui: 'both',
    progressive_enrollment_enabled: true,
    local_enrollment_enabled: true,
  },
};

const OPENID_DEFAULTS = {
  schema_version: 'oidc-V4',
  attribute_map: { mapping_mode: 'bind_all' },
  connection_settings: { pkce: 'auto' },
};

/** By strategy. */
const DEFAULTS: Readonly<Record<string, object>> = {
  [DATABASE]: DATABASE_DEFAULTS,
  oidc: OPENID_DEFAULTS,
  okta: { ...OPENID_DEFAULTS, attribute_map: { mapping_mode: 'basic_profile' } },
  // Its logins always ask for these.
  'google-apps': { email: true, profile: true, scope: ['email', 'profile'], handle_login_from_social: true },
  salesforce: { scope: [] },
  'salesforce-community': { scope: [] },
  'salesforce-sandbox': { scope: [] },
  waad: { waad_common_endpoint: false },
};

/**
 * Empty options get a member, because tools take options without members for options that they may not read.
 */
function optionsView({ strategy, options }: Pick<Connection, 'strategy' | 'options'>): object {
  const shown = strategy === DATABASE ? databaseOptions(options) : options;
  const complete = completed(DEFAULTS[strategy] ?? {}, shown);
  return Object.keys(complete).length === 0 ? { disable_signup: false } : complete;
}

/** Without the secrets of scripts, and without the older policy of passwords where the newer one replaces it. */
function databaseOptions(options: Connection['options']): object {
  const older: readonly string[] = options.password_options == null ? [] : OLDER_POLICY;
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => name !== 'configuration' && !older.includes(name)),
  );
}

/** Returns an object with the defaults of what it lacks, at any depth. What is null stays null. */
function completed(defaults: object, given: object): object {
  const members = Object.entries(given).map(([name, value]) => {
    const byDefault = (defaults as Readonly<Record<string, unknown>>)[name];
    return [name, isObject(byDefault) && isObject(value) ? completed(byDefault, value) : value];
  });
  return { ...defaults, ...Object.fromEntries(members) };
}
