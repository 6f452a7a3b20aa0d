// How an application authenticates at the token endpoint, and how long its secret must be.

// docs/understand/decisions/clients-keys.md#secrets-have-a-minimum-length
/** The minimum length of a secret in characters, for any use. */
export const MIN_SECRET_LENGTH = 8;

/**
 * The minimum for HS256, in bytes: anybody with a token can test guesses of the secret offline, so it must be as long
 * as the hash (RFC 7518 §3.2).
 */
export const HS256_SECRET = 32;

/** The minimum in production: 128 bits in base64url (RFC 6749 §10.10). */
export const EXPOSED_SECRET = 22;

/** The methods of `client_authentication_methods`, which use credentials that an application has registered. */
export const CREDENTIAL_METHODS = [
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
] as const;
export type CredentialMethod = (typeof CREDENTIAL_METHODS)[number];

export type AuthenticationMethod = 'none' | 'client_secret_post' | 'client_secret_basic' | CredentialMethod;

interface Authenticating {
  app_type?: string | undefined;
  token_endpoint_auth_method?: Exclude<AuthenticationMethod, CredentialMethod> | undefined;
  client_authentication_methods?:
    | { readonly [M in CredentialMethod]?: { readonly credentials: readonly unknown[] } | undefined }
    | undefined;
}

/** Returns the method whose credentials an application has registered, if any. */
export function credentialMethod({
  client_authentication_methods: methods = {},
}: Readonly<Pick<Authenticating, 'client_authentication_methods'>>): CredentialMethod | undefined {
  return CREDENTIAL_METHODS.find((method) => (methods[method]?.credentials.length ?? 0) > 0);
}

/**
 * Returns how an application authenticates: by its registered credentials, or else by its declared method, or else by
 * the default of its type.
 */
export function authenticationMethod(client: Readonly<Authenticating>): AuthenticationMethod {
  const method = credentialMethod(client);
  if (method !== undefined) return method;
  const isPublic = client.app_type === 'spa' || client.app_type === 'native';
  return client.token_endpoint_auth_method ?? (isPublic ? 'none' : 'client_secret_post');
}

/** Returns whether a method uses registered credentials instead of a secret. */
export function isCredentialMethod(method: AuthenticationMethod): method is CredentialMethod {
  return (CREDENTIAL_METHODS as readonly string[]).includes(method);
}
