// `/connections/{id}/scim-configuration`: how a directory is to bring its users. It is kept; provisioning by SCIM is not
// built in yet.
import { z } from 'zod';
import type { Connection } from '../../records/collections.ts';
import type { DocumentRecord } from '../../records/documents.ts';
import type { Frozen } from '../../records/record.ts';
import type { Random } from '../../runtime/random.ts';
import { hashSecret } from '../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { idOf } from '../ids.ts';
import { documentsOf } from '../kept.ts';
import { conflict, notFound } from '../resource.ts';

export interface ScimConfigurationDependencies {
  store: Store;
  /** ISO 8601. */
  now(): string;
  random: Random;
  tenantName: string;
}

/** The strategies that directories can bring users to, each with what it names a user by. */
const STRATEGIES: Readonly<Record<string, string>> = {
  samlp: 'userName',
  oidc: 'externalId',
  okta: 'userName',
  waad: 'externalId',
};

/** What a new one maps, where its maker does not say. */
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

const missing = notFound('Not Found');
const noConnection = notFound('The connection does not exist', 'inexistent_connection');
const taken = conflict('A SCIM configuration of this connection exists already.');

const PATH = '/connections/:id/scim-configuration';

const KIND = 'scim-configuration';

/** Under which a connection's is kept. */
const scimKey = (connectionId: string): string => `scim-${connectionId}`;

/** Removes a connection's configuration, with the tokens that a directory calls it by. */
export async function removeScim(store: Store, connectionId: string): Promise<void> {
  await store.collection('documents').delete(scimKey(connectionId));
  for (const { id } of await tokensOf(store, connectionId)) await store.collection('documents').delete(id);
}

async function connectionOf({ store }: ScimConfigurationDependencies, id = ''): Promise<Connection> {
  const found = await store.collection('connections').get(id);
  if (found === undefined) throw noConnection();
  return found;
}

/** @throws AuthError 404 */
async function find(deps: ScimConfigurationDependencies, connection: Connection) {
  const found = await deps.store.collection('documents').get(scimKey(connection.id));
  if (found?.kind !== KIND) throw missing();
  return found;
}

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

/** @throws AuthError 400 for a connection that no directory brings users to. */
function defaultsOf({ strategy }: Connection) {
  const attribute = STRATEGIES[strategy];
  if (attribute === undefined)
    throw apiError(400, `SCIM is not for connections of the strategy ${strategy}`, 'invalid_body');
  return { user_id_attribute: attribute, mapping: MAPPING };
}

const call = callsWith<ScimConfigurationDependencies>();

const TOKENS = `${PATH}/tokens`;
const TOKEN = 'scim-token';

/** How many tokens a connection may have: one in use, and the one that replaces it. */
const MOST_TOKENS = 2;

const SCOPES = ['get:users', 'post:users', 'put:users', 'patch:users', 'delete:users'] as const;

async function tokensOf(store: Store, connectionId: string) {
  const all = await documentsOf(store, TOKEN);
  return all.filter(({ body }) => body.connection_id === connectionId);
}

function tokenView({ id, body: { connection_id: _, ...shown }, created_at }: Frozen<DocumentRecord>) {
  return { token_id: id, ...shown, created_at };
}

function tokenCalls(): Call<ScimConfigurationDependencies>[] {
  return [
    call({
      method: 'GET',
      path: TOKENS,
      scopes: ['read:scim_token'],
      summary: 'Get the SCIM tokens of a connection',
      handle: async (deps, { params }) => {
        const connection = await connectionOf(deps, params.id);
        return ok((await tokensOf(deps.store, connection.id)).map(tokenView));
      },
    }),
    call({
      method: 'POST',
      path: TOKENS,
      scopes: ['create:scim_token'],
      summary: 'Create a SCIM token of a connection; it is shown once',
      body: z
        .strictObject({
          scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
          token_lifetime: z.int().min(900).max(315_360_000).nullable(),
        })
        .partial(),
      handle: async (deps, { params, body: { scopes = [...SCOPES], token_lifetime: seconds } }) => {
        const connection = await connectionOf(deps, params.id);
        await find(deps, connection);
        if ((await tokensOf(deps.store, connection.id)).length >= MOST_TOKENS)
          throw apiError(409, 'The connection has the most SCIM tokens that it may have.');
        const token = deps.random(32).toString('base64url');
        const at = deps.now();
        const until = seconds == null ? undefined : new Date(Date.parse(at) + seconds * 1000).toISOString();
        const record: DocumentRecord = {
          id: idOf('tok', deps.random),
          kind: TOKEN,
          // The token itself is nowhere: it is found by its hash.
          name: hashSecret(token),
          body: {
            connection_id: connection.id,
            scopes,
            ...(until === undefined ? {} : { valid_until: until }),
          },
          created_at: at,
          updated_at: at,
        };
        await deps.store.collection('documents').insert(record);
        return { status: 201, body: { ...tokenView(record), token }, after: tokenView(record) };
      },
    }),
    call({
      method: 'DELETE',
      path: `${TOKENS}/:token_id`,
      scopes: ['delete:scim_token'],
      summary: 'Delete a SCIM token of a connection',
      handle: async (deps, { params }) => {
        const connection = await connectionOf(deps, params.id);
        const found = (await tokensOf(deps.store, connection.id)).find(({ id }) => id === params.token_id);
        if (found === undefined) return noContent();
        await deps.store.collection('documents').delete(found.id);
        return noContent({ before: tokenView(found) });
      },
    }),
  ];
}

/** The calls. */
export const scimConfigurationCalls: Call<ScimConfigurationDependencies>[] = [
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
          throw thrown instanceof UniqueKeyError ? taken() : thrown;
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
      const before = await find(deps, connection);
      await removeScim(deps.store, connection.id);
      return noContent({ before: view(deps, connection, before) });
    },
  }),
  ...tokenCalls(),
  call({
    method: 'GET',
    path: `${PATH}/default-mapping`,
    scopes: ['read:scim_config'],
    summary: 'Get the default mapping of a connection',
    handle: async (deps, { params }) =>
      ok({ mapping: defaultsOf(await connectionOf(deps, params.id)).mapping }),
  }),
];
