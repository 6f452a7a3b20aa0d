// How a client authenticates: its methods, and the credentials that they name.
import { z } from 'zod';
import {
  authenticationMethod,
  CREDENTIAL_METHODS,
  type CredentialMethod,
  credentialMethod,
} from '../../../../records/clients/client-authentication.ts';
import type { Client } from '../../../../records/collections.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import {
  authenticationKeys,
  type ClientKey,
  keysOf,
  methodOf,
  newKey,
  requestObjectKeys,
  withKeys,
} from '../../client-keys.ts';
import { idOf } from '../../ids.ts';
import { apiError } from '../../management-errors.ts';
import { checkedBy } from '../../resource.ts';
import { isObject } from '../../section.ts';
import { credentialBody } from './client-credentials.ts';

/** What new credentials are made with. */
interface NewKeyDependencies {
  random: Random;
  /** ISO 8601. */
  now(): string;
}

/** Members that only callers with one of KEY_SCOPES can read. */
export const KEYS = ['client_secret', 'encryption_key'] as const;

export const KEY_SCOPES = ['read:client_keys', 'read:client_credentials', 'update:client_keys'];

const methodBody = z.object({
  credentials: z
    .array(z.union([z.strictObject({ id: z.string().max(64) }), credentialBody]))
    .max(20)
    .optional(),
});

/**
 * Returns the authentication methods of a client with the ids of its credentials, which are read at
 * `/clients/{id}/credentials`.
 */
export function credentialIds(client: Client): object {
  const method = credentialMethod(client);
  const others = Object.entries(client.client_authentication_methods ?? {}).filter(
    ([name]) => !(CREDENTIAL_METHODS as readonly string[]).includes(name),
  );
  const credentials = authenticationKeys(client).map(({ id }) => ({ id }));
  return { ...Object.fromEntries(others), ...(method === undefined ? {} : { [method]: { credentials } }) };
}

/**
 * Returns a client with the credentials that a body asks for: a new one is described in full, an existing one named
 * by its id. Credentials that are no longer used are kept.
 * @throws AuthError 400
 */
export function applyKeys<T extends object>(
  before: Client | undefined,
  body: T & { client_authentication_methods?: unknown },
  deps: NewKeyDependencies,
): T {
  const knownKeys = before === undefined ? [] : keysOf(before);
  const methods = (body.client_authentication_methods ?? {}) as { [M in CredentialMethod]?: unknown };
  const [method, second] = CREDENTIAL_METHODS.filter((one) => methods[one] !== undefined);
  if (second !== undefined)
    throw apiError(400, 'client_authentication_methods has more than one method', 'invalid_body');
  const used = namedKeys(knownKeys, (method && methods[method]) ?? {}, deps) ?? [];
  if (used.some((one) => methodOf(one) !== method))
    throw apiError(400, `The credentials are not for ${String(method)}`, 'invalid_body');
  const unusedKeys = knownKeys.filter(({ id }) => !used.some((key) => key.id === id));
  return withKeys(body, used, unusedKeys);
}

/**
 * Refuses a body that makes a client public without `token_endpoint_auth_method: none`. Without credentials, the method
 * of a client is the default of its type, which is `none` for native and single-page applications.
 * @param before the client before the change; undefined for a new one.
 * @throws AuthError 400
 */
export function refuseUnrequestedPublic(
  before: Parameters<typeof authenticationMethod>[0] | undefined,
  after: Parameters<typeof authenticationMethod>[0],
  body: Readonly<Record<string, unknown>>,
): void {
  if (authenticationMethod(after) !== 'none' || body.token_endpoint_auth_method === 'none') return;
  const { client_authentication_methods: methods } = body;
  const wasConfidential =
    before === undefined
      ? isObject(methods) && CREDENTIAL_METHODS.some((one) => isObject(methods[one]))
      : authenticationMethod(before) !== 'none';
  if (!wasConfidential) return;
  throw apiError(
    400,
    'The application would not authenticate any more: if that is intended, set token_endpoint_auth_method to none.',
    'invalid_body',
  );
}

/**
 * Returns the credentials that a part of a body names or describes; undefined if it has no `credentials`.
 * @throws AuthError 400
 */
function namedKeys(
  knownKeys: readonly ClientKey[],
  part: unknown,
  deps: NewKeyDependencies,
): ClientKey[] | undefined {
  return checkedBy(methodBody, part).credentials?.map((one) => {
    if (!('id' in one)) return newKey(one, { id: idOf('cred', deps.random), now: deps.now() });
    const found = knownKeys.find(({ id }) => id === one.id);
    if (found === undefined) throw apiError(400, `The credential ${one.id} does not exist`, 'invalid_body');
    return found;
  });
}

/**
 * Returns a client with the keys of request objects that a body asks for. New keys become credentials of the client
 * too.
 * @throws AuthError 400
 */
export function applyRequestKeys<T extends object>(
  before: Client | undefined,
  body: T & { signed_request_object?: unknown; credentials?: unknown },
  deps: NewKeyDependencies,
): T {
  const { signed_request_object: part } = body;
  if (!isObject(part)) return body;
  // Includes the keys that the same body adds for assertions.
  const knownKeys = keysOf({
    ...before,
    ...body,
    signed_request_object: before?.signed_request_object,
  } as Client);
  const credentials =
    namedKeys(knownKeys, part, deps) ?? (before === undefined ? [] : requestObjectKeys(before));
  const isNew = ({ id }: ClientKey) => !knownKeys.some((key) => key.id === id);
  const unusedKeys = [...((body.credentials ?? []) as ClientKey[]), ...credentials.filter(isNew)];
  return {
    ...body,
    ...(unusedKeys.length > 0 && { credentials: unusedKeys }),
    signed_request_object: { ...part, credentials },
  };
}

/**
 * Returns a client in which the credentials of its privileged access to a token vault authenticate nothing: they are for
 * another purpose, and a new credential authenticates at once.
 * @throws AuthError 400 if the client would authenticate by another method, or not at all.
 */
export function withoutVaultKeys<T extends object>(client: T): T {
  const { token_vault_privileged_access: vault } = client as { token_vault_privileged_access?: unknown };
  const named = vaultCredentials.safeParse(vault).data?.credentials ?? [];
  const isForVault = ({ id }: ClientKey) => named.some((one) => one.id === id);
  const used = authenticationKeys(client as T & Client);
  if (!used.some(isForVault)) return client;
  if (used.every(isForVault))
    throw apiError(
      400,
      'The only credential of an application cannot be for its token vault: change client_authentication_methods first.',
      'invalid_body',
    );
  const others = keysOf(client as T & Client).slice(used.length);
  const kept = used.filter((key) => !isForVault(key));
  return withKeys(client, kept, [...used.filter(isForVault), ...others]);
}

const vaultCredentials = z.object({ credentials: z.array(z.object({ id: z.string() })).optional() });
