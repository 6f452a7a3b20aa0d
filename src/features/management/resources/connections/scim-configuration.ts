// `/connections/{id}/scim-configuration`: settings for provisioning users by SCIM. They are stored; SCIM itself is
// not implemented.
import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import type { Connection } from '../../../../records/collections.ts';
import type { DocumentRecord } from '../../../../records/tenant/documents.ts';
import { UniqueKeyError } from '../../../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { documentsOf } from '../../document-resource.ts';
import { arrayAnswer, cursorQuery, pageQuery } from '../../list.ts';
import { fieldsQuery } from '../../management-fields.ts';
import { conflict, notFound } from '../../resource.ts';
import {
  connectionOf,
  find,
  KIND,
  missing,
  PATH,
  removeScim,
  type ScimConfigurationDependencies,
  scimKey,
} from './scim.ts';
import { scimTokenCalls } from './scim-tokens.ts';

/** The strategies with SCIM, each with the attribute that identifies a user. */
const STRATEGIES: Readonly<Record<string, string>> = {
  samlp: 'userName',
  oidc: 'externalId',
  okta: 'userName',
  waad: 'externalId',
};

/** The default mapping of a new configuration. */
const MAPPING = [
  { auth0: 'preferred_username', scim: 'userName' },
  { auth0: 'email', scim: 'emails[primary eq true].value' },
  { auth0: 'app_metadata.external_id', scim: 'externalId' },
  { auth0: 'blocked', scim: 'active' },
  { auth0: 'name', scim: 'displayName' },
  { auth0: 'given_name', scim: 'name.givenName' },
  { auth0: 'family_name', scim: 'name.familyName' },
];

const mapping = z
  .array(z.strictObject({ auth0: z.string().min(1).max(255), scim: z.string().min(1).max(255) }))
  .max(100);
const user_id_attribute = z.string().min(1).max(255);

const alreadyExists = conflict('A SCIM configuration of this connection exists already.');

function view(
  { tenantName }: ScimConfigurationDependencies,
  connection: Connection,
  { body, created_at, updated_at }: Frozen<DocumentRecord>,
) {
  return {
    connection_id: connection.id,
    connection_name: connection.name,
    strategy: connection.strategy,
    tenant_name: tenantName,
    ...body,
    created_at,
    updated_on: updated_at,
  };
}

/** @throws AuthError 404, as the hosted service, if its strategy has no SCIM */
function defaultsOf({ strategy }: Connection) {
  const attribute = STRATEGIES[strategy];
  if (attribute === undefined) throw notFound(`SCIM is not for connections of the strategy ${strategy}`)();
  return { user_id_attribute: attribute, mapping: MAPPING };
}

const call = callsWith<ScimConfigurationDependencies>();

export const scimConfigurationCalls: Call<ScimConfigurationDependencies>[] = [
  call({
    method: 'GET',
    path: '/connections-scim-configurations',
    scopes: ['read:scim_config'],
    summary: 'List the SCIM configurations of all connections',
    query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery }),
    handle: async (deps, { query }) => {
      const all = await Promise.all(
        (await documentsOf(deps.store, KIND)).map(async (record) => {
          const connection = await deps.store
            .collection('connections')
            .get(record.id.slice(scimKey('').length));
          return connection === undefined ? [] : [view(deps, connection, record)];
        }),
      );
      const shape = { key: 'scim_configurations', isCursorOnly: true };
      return ok(await arrayAnswer(query, all.flat(), (one) => one.connection_id, shape));
    },
  }),
  call({
    method: 'GET',
    path: PATH,
    scopes: ['read:scim_config'],
    summary: 'Get the SCIM configuration of a connection',
    handle: async (deps, { params }) => {
      const connection = await connectionOf(deps, params.id);
      return ok(view(deps, connection, await find(deps, connection)));
    },
  }),
  call({
    method: 'POST',
    path: PATH,
    scopes: ['create:scim_config'],
    summary: 'Create the SCIM configuration of a connection',
    body: z.strictObject({ user_id_attribute, mapping }).partial(),
    handle: async (deps, { params, body }) => {
      const connection = await connectionOf(deps, params.id);
      const at = deps.now();
      const record: DocumentRecord = {
        id: scimKey(connection.id),
        kind: KIND,
        body: { ...defaultsOf(connection), ...body },
        created_at: at,
        updated_at: at,
      };
      await deps.store
        .collection('documents')
        .insert(record)
        .catch((thrown: unknown) => {
          throw thrown instanceof UniqueKeyError ? alreadyExists() : thrown;
        });
      return created(view(deps, connection, record));
    },
  }),
  call({
    method: 'PATCH',
    path: PATH,
    scopes: ['update:scim_config'],
    summary: 'Update the SCIM configuration of a connection',
    body: z.strictObject({ user_id_attribute, mapping }),
    handle: async (deps, { params, body }) => {
      const connection = await connectionOf(deps, params.id);
      const before = await find(deps, connection);
      const after = await deps.store
        .collection('documents')
        .update(before.id, (current) => ({ ...current, body, updated_at: deps.now() }));
      if (after === undefined) throw missing();
      const shown = view(deps, connection, after);
      return ok(shown, { before: view(deps, connection, before), after: shown });
    },
  }),
  call({
    method: 'DELETE',
    path: PATH,
    scopes: ['delete:scim_config'],
    summary: 'Delete the SCIM configuration of a connection',
    handle: async (deps, { params }) => {
      const connection = await connectionOf(deps, params.id);
      const before = await deps.store.collection('documents').get(scimKey(connection.id));
      await removeScim(deps.store, connection.id);
      // Deleting is idempotent: deploy tools may repeat it.
      return noContent(before === undefined ? {} : { before: view(deps, connection, before) });
    },
  }),
  ...scimTokenCalls,
  call({
    method: 'GET',
    path: `${PATH}/default-mapping`,
    scopes: ['read:scim_config'],
    summary: 'Get the default mapping of a connection',
    handle: async (deps, { params }) =>
      ok({ mapping: defaultsOf(await connectionOf(deps, params.id)).mapping }),
  }),
];
