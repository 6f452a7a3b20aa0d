// What a token of people's tests is asked for with. It stands alone: its type goes with the package.

export interface TokenRequest {
  /** The user, by `id`. */
  user: { id: string };
  /** The API's identifier. */
  audience: string;
  /** The application that the token was for; the first one otherwise. */
  clientId?: string;
  /** Scopes, separated by spaces. */
  scope?: string;
  /** Further claims, and others in place of the usual ones: an `exp` that is over, another `iss` … */
  claims?: Readonly<Record<string, unknown>>;
}
