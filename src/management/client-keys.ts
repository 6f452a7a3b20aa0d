// The credentials that an application has: those that it authenticates with, and those that wait to be used.
import { X509Certificate } from 'node:crypto';
import {
  CREDENTIAL_METHODS,
  type CredentialMethod,
  credentialMethod,
} from '../records/client-authentication.ts';
import type { Client, Records } from '../records/collections.ts';
import type { Frozen } from '../records/record.ts';
import { sha256 } from '../runtime/secrets.ts';
import { apiError } from './errors.ts';

type ClientRecord = Records['clients'];
export type ClientKey = NonNullable<ClientRecord['credentials']>[number];

/** Which method credentials of a type are for. */
const METHOD_OF = {
  public_key: 'private_key_jwt',
  cert_subject_dn: 'tls_client_auth',
  x509_cert: 'self_signed_tls_client_auth',
} as const satisfies Record<string, CredentialMethod>;

/** The method that a credential is for. */
export function methodOf({ credential_type: type = 'public_key' }: Pick<ClientKey, 'credential_type'>) {
  return METHOD_OF[type as keyof typeof METHOD_OF];
}

/** Those that it authenticates with, each with its id. */
export function usedKeys(client: Client): ClientKey[] {
  const method = credentialMethod(client);
  const { credentials = [] } = (method && client.client_authentication_methods?.[method]) ?? {};
  return withIds(credentials);
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
function withIds(keys: readonly Frozen<ClientKey>[]): ClientKey[] {
  return keys.map((key) => {
    const { pem, jwk, alg, subject_dn, thumbprint_sha256 } = key as Readonly<Record<string, unknown>>;
    const parts = subject_dn ?? thumbprint_sha256 ?? [pem, jwk, alg];
    const own = sha256(JSON.stringify(parts)).replaceAll(/[-_]/g, '');
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
  const others = Object.fromEntries(
    Object.entries(methods ?? {}).filter(
      ([name]) => !(CREDENTIAL_METHODS as readonly string[]).includes(name),
    ),
  );
  const [first] = used;
  const all = {
    ...others,
    ...(first === undefined ? {} : { [methodOf(first)]: { credentials: [...used] } }),
  };
  return {
    ...rest,
    ...(Object.keys(all).length > 0 ? { client_authentication_methods: all } : {}),
    ...(waiting.length > 0 ? { credentials: [...waiting] } : {}),
  } as T;
}

/** A key as a body describes it. @throws AuthError 400 */
export function newKey(
  body: Readonly<Record<string, unknown>>,
  { id, now }: { id: string; now: string },
): ClientKey {
  const { parse_expiry_from_cert: fromCertificate, expires_at, ...key } = body;
  const expiry = expires_at ?? (fromCertificate === true ? expiryOf(String(key.pem)) : undefined);
  const isKey = (key.credential_type ?? 'public_key') === 'public_key';
  return {
    // What an assertion may name it by.
    ...(isKey && { kid: sha256(String(key.pem)) }),
    ...key,
    ...(isKey && { credential_type: 'public_key', alg: key.alg ?? 'RS256' }),
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
export function keyView(credential: ClientKey): object {
  const { pem: _pem, jwk, kid, ...key } = credential as Readonly<Record<string, unknown>>;
  const named = kid ?? (jwk as { kid?: unknown } | undefined)?.kid;
  return { credential_type: 'public_key', ...key, ...(typeof named === 'string' ? { kid: named } : {}) };
}
