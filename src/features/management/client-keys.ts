// The credentials of a client: those that it authenticates with, those that its request objects are verified with,
// and those stored for later use.
import { X509Certificate } from 'node:crypto';
import type { Frozen } from '../../records/base/record.ts';
import {
  CREDENTIAL_METHODS,
  type CredentialMethod,
  credentialMethod,
} from '../../records/clients/client-authentication.ts';
import { credentialId } from '../../records/clients/client-keys.ts';
import type { Client, Records } from '../../records/collections.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { apiError } from './management-errors.ts';

type ClientRecord = Records['clients'];
export type ClientKey = NonNullable<ClientRecord['credentials']>[number];

/** The authentication method that uses credentials of each type. */
const METHOD_OF = {
  public_key: 'private_key_jwt',
  cert_subject_dn: 'tls_client_auth',
  x509_cert: 'self_signed_tls_client_auth',
} as const satisfies Record<string, CredentialMethod>;

export function methodOf({ credential_type: type = 'public_key' }: Pick<ClientKey, 'credential_type'>) {
  return METHOD_OF[type as keyof typeof METHOD_OF];
}

/** Returns the credentials that a client authenticates with, each with its id. */
export function authenticationKeys(client: Client): ClientKey[] {
  const method = credentialMethod(client);
  const { credentials = [] } = (method && client.client_authentication_methods?.[method]) ?? {};
  return withIds(credentials);
}

/** Returns the keys that verify a client's request objects, each with its id. */
export function requestObjectKeys(client: Client): ClientKey[] {
  return withIds(client.signed_request_object?.credentials ?? []);
}

/**
 * Returns all credentials of a client, without duplicates, those for authentication first. One key may serve both
 * assertions and request objects.
 */
export function keysOf(client: Client): ClientKey[] {
  const all = [
    ...authenticationKeys(client),
    ...withIds(client.credentials ?? []),
    ...requestObjectKeys(client),
  ];
  return all.filter(({ id }, index) => all.findIndex((other) => other.id === id) === index);
}

/**
 * Returns the client with the keys of its request objects brought up to date: a changed key is replaced, a removed
 * one dropped.
 */
export function followingKeys<T extends Client>(client: T): T {
  const { signed_request_object: signedRequestObject } = client;
  if (!signedRequestObject) return client;
  const { client_authentication_methods: methods, credentials = [] } = client;
  const keys = withIds([...(methods?.private_key_jwt?.credentials ?? []), ...credentials]);
  const requestKeys = requestObjectKeys(client).flatMap(({ id }) => keys.find((key) => key.id === id) ?? []);
  return { ...client, signed_request_object: { ...signedRequestObject, credentials: requestKeys } };
}

function withIds(keys: readonly Frozen<ClientKey>[]): ClientKey[] {
  return keys.map((key) => ({ id: credentialId(key), ...structuredClone(key) }) as ClientKey);
}

/**
 * Returns the client with its credentials replaced.
 * @param used for authentication.
 * @param unusedKeys stored but unused.
 */
export function withKeys<T extends object>(
  client: T,
  used: readonly ClientKey[],
  unusedKeys: readonly ClientKey[],
): T {
  const {
    credentials: _,
    client_authentication_methods: methods,
    ...rest
  } = client as T & Partial<ClientRecord>;
  const others = Object.fromEntries(
    Object.entries(methods ?? {}).filter(
      ([name]) => !(CREDENTIAL_METHODS as readonly string[]).includes(name),
    ),
  );
  const [first] = used;
  const newMethods = {
    ...others,
    ...(first === undefined ? {} : { [methodOf(first)]: { credentials: [...used] } }),
  };
  return {
    ...rest,
    ...(Object.keys(newMethods).length > 0 ? { client_authentication_methods: newMethods } : {}),
    ...(unusedKeys.length > 0 ? { credentials: [...unusedKeys] } : {}),
  } as T;
}

/**
 * @param about its new id, and the time of creation (ISO 8601).
 * @throws AuthError 400 if a certificate cannot be parsed.
 */
export function newKey(
  body: Readonly<Record<string, unknown>>,
  { id, now }: { id: string; now: string },
): ClientKey {
  const { parse_expiry_from_cert: fromCertificate, expires_at, ...key } = body;
  const expiry = expires_at ?? (fromCertificate === true ? expiryOf(String(key.pem)) : undefined);
  const isKey = (key.credential_type ?? 'public_key') === 'public_key';
  return {
    // The key id that an assertion's header may name.
    ...(isKey && { kid: sha256(String(key.pem)) }),
    ...key,
    ...(isKey && { credential_type: 'public_key', alg: key.alg ?? 'RS256' }),
    id,
    ...(expiry === undefined ? {} : { expires_at: expiry }),
    created_at: now,
    updated_at: now,
  } as ClientKey;
}

/** Returns when a certificate expires, ISO 8601. @throws AuthError 400 if it cannot be parsed. */
function expiryOf(pem: string): string {
  try {
    return new Date(new X509Certificate(pem.replaceAll('\\n', '\n')).validTo).toISOString();
  } catch {
    throw apiError(400, 'The expiry could not be parsed: pem is no X.509 certificate', 'invalid_body');
  }
}

/** Returns a credential as the API shows it: without the key itself. */
export function keyView(credential: ClientKey): object {
  const { pem: _pem, jwk, kid, ...key } = credential as Readonly<Record<string, unknown>>;
  const keyId = kid ?? (jwk as { kid?: unknown } | undefined)?.kid;
  return { credential_type: 'public_key', ...key, ...(typeof keyId === 'string' ? { kid: keyId } : {}) };
}
