// The description of a well-known provider, whose logins use the OAuth 2.0 implementation of `../oauth2/`.
// docs/understand/decisions/connections.md#of-a-well-known-providers-response-only-the-standard-claims-are-stored

/** A JSON object of a response. */
export type Json = Readonly<Record<string, unknown>>;

interface ProfileAnswers {
  user: Json;
  /** The responses to the requests of {@link SocialPreset.further}, by name; undefined if the scope does not allow the request. */
  further: Readonly<Record<string, unknown>>;
  // docs/understand/decisions/connections.md#the-signature-of-lines-id-token-is-not-verified
  /**
   * The claims of the ID token in the token response; empty if there is none. Its signature is not verified, because it came
   * from the provider directly, by TLS (OpenID Connect Core 1.0 §3.1.3.7).
   */
  idToken: Json;
}

interface ProfileContext {
  accessToken: string;
  clientId: string;
  clientSecret: string;
  scopes: readonly string[];
}

/** A user: the provider's identifier, and claims named as in OpenID Connect. */
interface ProviderUser {
  id: unknown;
  profile: Record<string, unknown>;
}

export interface SocialPreset {
  displayName: string;
  authorization: string;
  token: string;
  /** URL for exchanging refresh tokens, if it is not the token endpoint. */
  refresh?: string;
  userInfo: string;
  /** Scopes that are always requested. */
  required?: readonly string[];
  /** Scopes that are requested if the connection has no others. */
  scope?: readonly string[];
  /** Boolean option of a connection to the scope that it requests. */
  scopes?: Readonly<Record<string, string>>;
  /** Whether the client authenticates by HTTP Basic (RFC 6749 §2.3.1), and not in the form. */
  basic?: true;
  pkce?: true;
  /** Returns what the request to the profile endpoint has in addition to the access token. */
  profileRequest?(context: ProfileContext): {
    method?: 'POST';
    query?: Readonly<Record<string, string>>;
    headers?: Readonly<Record<string, string>>;
  };
  /** Additional requests: name to the path that is appended to the URL of the profile endpoint. */
  further?: Readonly<Record<string, string>>;
  read(answers: ProfileAnswers): ProviderUser;
}

/** Returns the value at a path within a JSON value; undefined if there is none. */
export function valueAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (one, name) =>
      typeof one === 'object' && one !== null && Object.hasOwn(one, name)
        ? (one as Record<string | number, unknown>)[name]
        : undefined,
    value,
  );
}

/** Returns a value if it is an array, or else an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the claims that are non-empty strings. */
export function texts(claims: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(claims).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
    ),
  );
}

/** @param isVerified the provider's own value; some send the text `true`. */
export function email(address: unknown, isVerified: unknown): Record<string, unknown> {
  if (typeof address !== 'string' || address === '') return {};
  return { email: address, email_verified: isVerified === true || isVerified === 'true' };
}

/** Returns options whose scopes have the same names. @param names separated by spaces. */
export function sameNames(names: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, name]));
}

/** Reads a response that has the claims of OpenID Connect Core 1.0 §5.1. */
export function readClaims({ user }: ProfileAnswers): ProviderUser {
  const { name, given_name, family_name, middle_name, nickname, preferred_username, picture } = user;
  const { profile, website, gender, birthdate, zoneinfo, locale } = user;
  return {
    id: user.sub,
    profile: {
      ...texts({ name, given_name, family_name, middle_name, nickname, preferred_username, picture }),
      ...texts({ profile, website, gender, birthdate, zoneinfo, locale }),
      ...email(user.email, user.email_verified),
    },
  };
}
