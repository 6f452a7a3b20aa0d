// The parameters of a token for tests. This file imports nothing, because its type is published with the package.

export interface TokenRequest {
  /** The user, by `id`. */
  user: { id: string };
  /** The API's identifier. */
  audience: string;
  /** The client that the token was issued to; by default the first one. */
  clientId?: string;
  /** Scopes, separated by spaces. */
  scope?: string;
  /** Claims to add or to replace: an `exp` in the past, another `iss` … */
  claims?: Readonly<Record<string, unknown>>;
}
