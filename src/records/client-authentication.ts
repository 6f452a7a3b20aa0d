// How an application proves who it is at the token endpoint, and how long its secret must be.

/** A secret has at least so many characters, wherever it is used. */
export const LEAST_SECRET = 8;

/**
 * With HS256 everybody who has a token can try secrets on it, as fast as they like: the key is as long as the hash
 * (RFC 7518 §3.2), 32 bytes.
 */
export const HS256_SECRET = 32;

/** In production: 128 bits in base64url (RFC 6749 §10.10). */
export const EXPOSED_SECRET = 22;

/** Those of `client_authentication_methods`, by credentials that an application has registered. */
export const CREDENTIAL_METHODS = [
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
] as const;
export type CredentialMethod = (typeof CREDENTIAL_METHODS)[number];

export type AuthenticationMethod = 'none' | 'client_secret_post' | 'client_secret_basic' | CredentialMethod;

/** What of an application's record says how it authenticates. */
interface Authenticating {
  app_type: string;
  token_endpoint_auth_method?: Exclude<AuthenticationMethod, CredentialMethod> | undefined;
  client_authentication_methods?:
    | { readonly [M in CredentialMethod]?: { readonly credentials: readonly unknown[] } | undefined }
    | undefined;
}

/** The method whose credentials an application has, if it has any. */
export function credentialMethod({
  client_authentication_methods: methods = {},
}: Readonly<Pick<Authenticating, 'client_authentication_methods'>>): CredentialMethod | undefined {
  return CREDENTIAL_METHODS.find((method) => (methods[method]?.credentials.length ?? 0) > 0);
}

/** How an application authenticates: by credentials where it has any, else as it says, else as its kind does. */
export function authenticationMethod(client: Readonly<Authenticating>): AuthenticationMethod {
  const method = credentialMethod(client);
  if (method !== undefined) return method;
  const isPublic = client.app_type === 'spa' || client.app_type === 'native';
  return client.token_endpoint_auth_method ?? (isPublic ? 'none' : 'client_secret_post');
}

/** Whether it is one of those that need registered credentials, and no secret. */
export function isCredentialMethod(method: AuthenticationMethod): method is CredentialMethod {
  return (CREDENTIAL_METHODS as readonly string[]).includes(method);
}
