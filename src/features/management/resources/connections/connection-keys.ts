// `/connections/{id}/keys`: the keys that sign requests to identity providers, and their rotation.
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import type { Connection } from '../../../../records/collections.ts';
import type { ConnectionKeyRecord, SigningKeyRecord } from '../../../../records/state/engine.ts';
import { type Store, UniqueKeyError } from '../../../../store/contract.ts';
import { type Call, callsWith, created, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { publicView } from '../../public-keys.ts';
import { conflict, notFound } from '../../resource.ts';

export interface ConnectionKeysDependencies {
  store: Store;
  /** @param alg its JWS algorithm. */
  makeSigningKey(alg: string): Promise<Omit<SigningKeyRecord, 'state'>>;
}

/** The strategies whose requests to identity providers can be signed. */
const SIGNING = new Set(['oidc', 'okta', 'waad', 'samlp', 'adfs', 'pingfederate']);

const signingAlg = z.enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384']);
const body = z.strictObject({ signing_alg: signingAlg }).partial();

const noConnection = notFound('The connection does not exist', 'inexistent_connection');
const noKeys = notFound('The connection has no keys', 'inexistent_connection_keys');
const taken = conflict('The connection has keys already: rotate them.');

type Key = Frozen<ConnectionKeyRecord>;
const ORDER = ['current', 'next', 'previous'];

function view(key: Key) {
  const shown = publicView(key);
  return {
    ...shown,
    pkcs: shown.cert,
    algorithm: key.jwk.alg,
    key_use: 'signing',
    subject_dn: `/${new X509Certificate(shown.cert).subject.replaceAll('\n', '/')}`,
  };
}

async function connectionOf({ store }: ConnectionKeysDependencies, id = ''): Promise<Connection> {
  const found = await store.collection('connections').get(id);
  if (found === undefined) throw noConnection();
  return found;
}

/** Returns the current, the next and the previous key, as far as they exist. */
async function keysOf({ store }: ConnectionKeysDependencies, connection: Connection): Promise<Key[]> {
  const found = await store.collection('connectionKeys').findBy('connection', connection.id);
  return found.sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
}

const refuseTaken = (thrown: unknown): never => {
  throw thrown instanceof UniqueKeyError ? taken() : thrown;
};

/** @throws UniqueKeyError if it has keys. */
async function makeKeys(
  { store, makeSigningKey }: ConnectionKeysDependencies,
  connection: Connection,
  alg: string,
): Promise<ConnectionKeyRecord[]> {
  const keys = await Promise.all(
    (['current', 'next'] as const).map(async (state) => ({
      ...(await makeSigningKey(alg)),
      state,
      connection: connection.id,
    })),
  );
  await store.batch(keys.map((key) => ({ collection: 'connectionKeys', insert: key }) as const));
  return keys;
}

/**
 * Creates the keys of a connection that cannot work without: its `token_endpoint_auth_method` is private_key_jwt.
 * Does nothing if it has keys, or if its signing algorithm is not supported.
 */
export async function makeNeededKeys(
  deps: ConnectionKeysDependencies,
  connection: Connection,
): Promise<void> {
  const { token_endpoint_auth_method, token_endpoint_auth_signing_alg = 'RS256' } = connection.options;
  const alg = signingAlg.safeParse(token_endpoint_auth_signing_alg);
  if (token_endpoint_auth_method !== 'private_key_jwt' || !SIGNING.has(connection.strategy) || !alg.success)
    return;
  if ((await keysOf(deps, connection)).length > 0) return;
  await makeKeys(deps, connection, alg.data).catch((thrown: unknown) => {
    // A concurrent change has created the keys.
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  });
}

const call = callsWith<ConnectionKeysDependencies>();
const PATH = '/connections/:id/keys';

export const connectionKeyCalls: Call<ConnectionKeysDependencies>[] = [
  call({
    method: 'GET',
    path: PATH,
    scopes: ['read:connections_keys'],
    summary: 'Get the keys of a connection',
    handle: async (deps, { params }) =>
      ok((await keysOf(deps, await connectionOf(deps, params.id))).map(view)),
  }),
  call({
    method: 'POST',
    path: PATH,
    scopes: ['create:connections_keys'],
    summary: 'Create the keys of a connection',
    body,
    handle: async (deps, { params, body: { signing_alg = 'RS256' } }) => {
      const connection = await connectionOf(deps, params.id);
      if (!SIGNING.has(connection.strategy))
        throw apiError(
          400,
          `Connections of the strategy ${connection.strategy} sign nothing`,
          'invalid_body',
        );
      if ((await keysOf(deps, connection)).length > 0) throw taken();
      const keys = await makeKeys(deps, connection, signing_alg).catch(refuseTaken);
      return created(keys.map(view));
    },
  }),
  call({
    method: 'POST',
    path: `${PATH}/rotate`,
    scopes: ['create:connections_keys', 'update:connections_keys'],
    summary: 'Rotate the keys of a connection',
    body,
    handle: async (deps, { params, body: { signing_alg } }) => {
      const connection = await connectionOf(deps, params.id);
      const [current, next, ...previous] = await keysOf(deps, connection);
      if (current === undefined || next === undefined) throw noKeys();
      const alg = signing_alg ?? String(next.jwk.alg);
      const added = {
        ...(await deps.makeSigningKey(alg)),
        state: 'next',
        connection: connection.id,
      } as const;
      // All in one batch, so that a concurrent login reads either the old keys or the new ones.
      await deps.store
        .batch([
          ...previous.map(({ id }) => ({ collection: 'connectionKeys', delete: id }) as const),
          { collection: 'connectionKeys', put: { ...current, state: 'previous' } as ConnectionKeyRecord },
          { collection: 'connectionKeys', put: { ...next, state: 'current' } as ConnectionKeyRecord },
          { collection: 'connectionKeys', insert: added },
        ])
        .catch(refuseTaken);
      return created(view(added));
    },
  }),
];
