// The keys that an application has: those that it authenticates with, and those that wait to be used.
import { X509Certificate } from 'node:crypto';
import type { Credential } from '../records/client-keys.ts';
import type { Client, Records } from '../records/collections.ts';
import { sha256 } from '../runtime/secrets.ts';
import { apiError } from './errors.ts';

type ClientRecord = Records['clients'];
export type ClientKey = NonNullable<ClientRecord['credentials']>[number];

/** Those that its assertions are verified with, each with its id. */
export function usedKeys(client: Client): ClientKey[] {
  return withIds(client.client_authentication_methods?.private_key_jwt?.credentials ?? []);
}

/** Those that its request objects are verified with. */
export function requestKeys(client: Client): ClientKey[] {
  return withIds(client.signed_request_object?.credentials ?? []);
}

/** All of an application's: those of its assertions first. A key may be for assertions and request objects alike. */
export function keysOf(client: Client): ClientKey[] {
  const all = [...usedKeys(client), ...withIds(client.credentials ?? []), ...requestKeys(client)];
  return all.filter(({ id }, index) => all.findIndex((other) => other.id === id) === index);
}

/** The record whose keys of request objects are as its keys are now: changed, or gone. */
export function followingKeys<T extends Client>(client: T): T {
  const { signed_request_object: requests } = client;
  if (!requests) return client;
  const { client_authentication_methods: methods, credentials = [] } = client;
  const now = withIds([...(methods?.private_key_jwt?.credentials ?? []), ...credentials]);
  const kept = requestKeys(client).flatMap(({ id }) => now.find((key) => key.id === id) ?? []);
  return { ...client, signed_request_object: { ...requests, credentials: kept } };
}

/** A key that came with a tenant file has no id of its own; it is named by what it is. */
function withIds(keys: readonly Credential[]): ClientKey[] {
  return keys.map((key) => {
    const { pem, jwk, alg } = key;
    const own = sha256(JSON.stringify([pem, jwk, alg])).replaceAll(/[-_]/g, '');
    return { id: `cred_${own.slice(0, 16)}`, ...structuredClone(key) } as ClientKey;
  });
}

/** The record with other keys. */
export function withKeys<T extends object>(
  client: T,
  used: readonly ClientKey[],
  waiting: readonly ClientKey[],
): T {
  const {
    credentials: _,
    client_authentication_methods: methods,
    ...rest
  } = client as T & Partial<ClientRecord>;
  const { private_key_jwt: _used, ...others } = methods ?? {};
  const all = { ...others, ...(used.length > 0 ? { private_key_jwt: { credentials: [...used] } } : {}) };
  return {
    ...rest,
    ...(Object.keys(all).length > 0 ? { client_authentication_methods: all } : {}),
    ...(waiting.length > 0 ? { credentials: [...waiting] } : {}),
  } as unknown as T;
}

/** A key as a body describes it. @throws AuthError 400 */
export function newKey(
  body: Readonly<Record<string, unknown>>,
  { id, now }: { id: string; now: string },
): ClientKey {
  const { parse_expiry_from_cert: fromCertificate, expires_at, ...key } = body;
  const expiry = expires_at ?? (fromCertificate === true ? expiryOf(String(key.pem)) : undefined);
  return {
    // What an assertion may name it by.
    kid: sha256(String(key.pem)),
    ...key,
    credential_type: 'public_key',
    alg: key.alg ?? 'RS256',
    id,
    ...(expiry === undefined ? {} : { expires_at: expiry }),
    created_at: now,
    updated_at: now,
  } as ClientKey;
}

/** When a certificate ends, ISO 8601. @throws AuthError 400 for what is none. */
function expiryOf(pem: string): string {
  try {
    return new Date(new X509Certificate(pem.replaceAll('\\n', '\n')).validTo).toISOString();
  } catch {
    throw apiError(400, 'The expiry could not be parsed: pem is no X.509 certificate', 'invalid_body');
  }
}

/** As it is answered: without the key itself. */
export function keyView({ pem: _pem, jwk, kid, ...key }: ClientKey): object {
  const named = kid ?? (jwk as { kid?: unknown } | undefined)?.kid;
  return { credential_type: 'public_key', ...key, ...(typeof named === 'string' ? { kid: named } : {}) };
}
