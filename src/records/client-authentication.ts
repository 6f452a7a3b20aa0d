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

export type AuthenticationMethod = 'none' | 'client_secret_post' | 'client_secret_basic' | 'private_key_jwt';

/** What of an application's record says how it authenticates. */
interface Authenticating {
  app_type: string;
  token_endpoint_auth_method?: Exclude<AuthenticationMethod, 'private_key_jwt'> | undefined;
  client_authentication_methods?:
    | { readonly private_key_jwt?: { readonly credentials: readonly unknown[] } | undefined }
    | undefined;
}

/** How an application authenticates: by a key where it has one, else as it says, else as its kind does. */
export function authenticationMethod(client: Readonly<Authenticating>): AuthenticationMethod {
  const keys = client.client_authentication_methods?.private_key_jwt?.credentials ?? [];
  if (keys.length > 0) return 'private_key_jwt';
  const isPublic = client.app_type === 'spa' || client.app_type === 'native';
  return client.token_endpoint_auth_method ?? (isPublic ? 'none' : 'client_secret_post');
}
