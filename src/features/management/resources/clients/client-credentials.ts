// `/clients/{id}/credentials`: the credentials of clients, which are keys and certificates.
import { z } from 'zod';
import { clientSchema } from '../../../../records/clients/clients.ts';
import type { Client } from '../../../../records/collections.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import {
  authenticationKeys,
  type ClientKey,
  followingKeys,
  keysOf,
  keyView,
  methodOf,
  newKey,
  withKeys,
} from '../../client-keys.ts';
import { idOf } from '../../ids.ts';
import { pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { checkedBy, notFound } from '../../resource.ts';

export interface ClientCredentialsDependencies {
  store: Store;
  random: Random;
  /** ISO 8601. */
  now(): string;
}

const noClient = notFound('The client does not exist', 'inexistent_client');
const noKey = notFound('The credential does not exist', 'inexistent_credential');

/** Highest number of credentials of a client; a rotation needs fewer. */
const MAX_CREDENTIALS = 20;

const date = z.iso.datetime({ offset: true, error: "Object didn't pass validation for format date-time" });

const common = {
  name: z.string().max(128).optional(),
  expires_at: date.optional(),
};

const keyBody = z.strictObject({
  ...common,
  credential_type: z.literal('public_key'),
  pem: z.string().min(1).max(8192),
  alg: z.enum(['RS256', 'RS384', 'PS256', 'PS384', 'ES256', 'ES384', 'EdDSA']).optional(),
  kid: z
    .string()
    .regex(/^[0-9a-zA-Z-_]{10,64}$/, 'String does not match pattern ^([0-9a-zA-Z-_]{10,64})$')
    .optional(),
  parse_expiry_from_cert: z.boolean().optional(),
});

/** A certificate in a body. The next schema is for the subject of a certificate. */
const certificateBody = z.strictObject({
  ...common,
  credential_type: z.literal('x509_cert'),
  pem: z.string().min(1).max(16_384),
  parse_expiry_from_cert: z.boolean().optional(),
});
const subjectBody = z
  .strictObject({
    ...common,
    credential_type: z.literal('cert_subject_dn'),
    subject_dn: z.string().min(1).max(1024).optional(),
    pem: z.string().min(1).max(16_384).optional(),
  })
  .refine(({ subject_dn: name, pem }) => name !== undefined || pem !== undefined, {
    path: ['subject_dn'],
    message: 'is needed, or a certificate in pem',
  });

/** A credential in a body; `POST /clients` accepts it too. */
export const credentialBody = z.discriminatedUnion('credential_type', [
  keyBody,
  certificateBody,
  subjectBody,
]);

const SCOPE = 'client_credentials';

/** @throws AuthError 404, 400 */
async function changeKeys(
  { store }: ClientCredentialsDependencies,
  id: string | undefined,
  change: (client: Client) => Client,
): Promise<Client> {
  const after = await store.collection('clients').update(id ?? '', (current) => {
    const { id: clientId, ...record } = followingKeys(change(current));
    return { ...checkedBy(clientSchema, record), id: clientId } as typeof current;
  });
  if (after === undefined) throw noClient();
  return after;
}

async function find({ store }: ClientCredentialsDependencies, id = ''): Promise<Client> {
  const client = await store.collection('clients').get(id);
  if (client === undefined) throw noClient();
  return client;
}

/** @throws AuthError 404 */
function keyOf(client: Client, id: string | undefined): ClientKey {
  const found = keysOf(client).find((key) => key.id === id);
  if (found === undefined) throw noKey();
  return found;
}

function withKey(client: Client, key: ClientKey): Client {
  const used = authenticationKeys(client);
  const unusedKeys = keysOf(client).slice(used.length);
  if (used.length + unusedKeys.length >= MAX_CREDENTIALS)
    throw apiError(403, 'You reached the limit of entities of this type for this tenant.');
  // A client that authenticates with a secret, or with credentials of another method, keeps doing so until its method
  // is changed.
  return used.some((one) => methodOf(one) === methodOf(key))
    ? withKeys(client, [...used, key], unusedKeys)
    : withKeys(client, [], [...unusedKeys, key]);
}

function withoutKey(client: Client, id: string | undefined): Client {
  const used = authenticationKeys(client);
  const isKept = (key: ClientKey) => key.id !== id;
  // Without its last credential, the client would authenticate by another method, or not at all.
  // docs/understand/decisions/clients-keys.md#a-new-key-of-an-application-that-has-a-secret-is-not-used-at-once
  if (used.length > 0 && !used.some(isKept))
    throw apiError(
      400,
      'The only credential of an application cannot be deleted: change client_authentication_methods first.',
      'invalid_body',
    );
  return withKeys(client, used.filter(isKept), keysOf(client).slice(used.length).filter(isKept));
}

function withChangedKey(
  client: Client,
  id: string | undefined,
  change: (key: ClientKey) => ClientKey,
): Client {
  const used = authenticationKeys(client);
  keyOf(client, id);
  const all = keysOf(client).map((key) => (key.id === id ? change(key) : key));
  return withKeys(client, all.slice(0, used.length), all.slice(used.length));
}

const call = callsWith<ClientCredentialsDependencies>();

export const clientCredentialCalls: Call<ClientCredentialsDependencies>[] = [
  call({
    method: 'GET',
    path: '/clients/:id/credentials',
    scopes: [`read:${SCOPE}`],
    summary: 'Get the credentials of a client',
    // The response always has all credentials, whatever page was asked for: there are few.
    query: z.strictObject(pageQuery),
    handle: async (deps, { params }) => ok(keysOf(await find(deps, params.id)).map(keyView)),
  }),
  call({
    method: 'POST',
    path: '/clients/:id/credentials',
    scopes: [`create:${SCOPE}`],
    summary: 'Create a credential of a client',
    body: credentialBody,
    handle: async (deps, { params, body }) => {
      const key = newKey(body, { id: idOf('cred', deps.random), now: deps.now() });
      return created(
        keyView(keyOf(await changeKeys(deps, params.id, (client) => withKey(client, key)), key.id)),
      );
    },
  }),
  call({
    method: 'GET',
    path: '/clients/:id/credentials/:credential_id',
    scopes: [`read:${SCOPE}`],
    summary: 'Get a credential of a client',
    handle: async (deps, { params }) => ok(keyView(keyOf(await find(deps, params.id), params.credential_id))),
  }),
  call({
    method: 'PATCH',
    path: '/clients/:id/credentials/:credential_id',
    scopes: [`update:${SCOPE}`],
    summary: 'Update when a credential of a client expires',
    body: z.strictObject({ expires_at: date.nullish() }),
    handle: async (deps, { params, body }) => {
      const id = params.credential_id;
      const before = keyOf(await find(deps, params.id), id);
      const { expires_at } = body;
      const after = await changeKeys(deps, params.id, (client) =>
        withChangedKey(client, id, ({ expires_at: old, ...key }) => {
          const expiry = expires_at === undefined ? old : (expires_at ?? undefined);
          return { ...key, ...(expiry === undefined ? {} : { expires_at: expiry }), updated_at: deps.now() };
        }),
      );
      const view = keyView(keyOf(after, id));
      return ok(view, { before: keyView(before), after: view });
    },
  }),
  call({
    method: 'DELETE',
    path: '/clients/:id/credentials/:credential_id',
    scopes: [`delete:${SCOPE}`],
    summary: 'Delete a credential of a client',
    handle: async (deps, { params }) => {
      const before = keysOf(await find(deps, params.id)).find(({ id }) => id === params.credential_id);
      if (before === undefined) return noContent();
      await changeKeys(deps, params.id, (client) => withoutKey(client, params.credential_id));
      return noContent({ before: keyView(before) });
    },
  }),
];
