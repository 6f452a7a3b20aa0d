// What a preset is: a well-known provider as data, over the OAuth 2.0 of `../oauth2/`.

/** An object of an answer. */
export type Json = Readonly<Record<string, unknown>>;

/** What a provider answers of a user. */
interface ProfileAnswers {
  user: Json;
  /** Of the further requests, by name; undefined where the user, or the scope, does not allow them. */
  further: Readonly<Record<string, unknown>>;
  /** The claims of an ID token that came with the access token, by TLS from the provider itself; empty without one. */
  idToken: Json;
}

/** What is known when a user's profile is asked for. */
interface ProfileContext {
  accessToken: string;
  clientId: string;
  clientSecret: string;
  /** Those that were asked for. */
  scopes: readonly string[];
}

/** Who the user is: the id as the provider has it, and claims in the names of OpenID Connect. */
interface ReadProfile {
  id: unknown;
  profile: Record<string, unknown>;
}

/** A provider. */
export interface SocialPreset {
  /** What the provider is called. */
  displayName: string;
  authorization: string;
  token: string;
  /** Where refresh tokens are exchanged, where that is not the token endpoint. */
  refresh?: string;
  /** Says who the user is. */
  userInfo: string;
  /** Asked for always. */
  required?: readonly string[];
  /** Asked for where the connection names no others. */
  scope?: readonly string[];
  /** Scopes by the option, a boolean, that asks for them. */
  scopes?: Readonly<Record<string, string>>;
  /** The client authenticates by HTTP Basic (RFC 6749 §2.3.1), and not in the form. */
  basic?: true;
  pkce?: true;
  /** What the request for the profile has beside the token. */
  ask?(context: ProfileContext): {
    method?: 'POST';
    query?: Readonly<Record<string, string>>;
    headers?: Readonly<Record<string, string>>;
  };
  /** Further requests, by name: what follows the path of the first. */
  further?: Readonly<Record<string, string>>;
  read(answers: ProfileAnswers): ReadProfile;
}

/** A member of a member; undefined where there is none. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (one, name) =>
      typeof one === 'object' && one !== null && Object.hasOwn(one, name)
        ? (one as Record<string | number, unknown>)[name]
        : undefined,
    value,
  );
}

/** A list; empty for what is none. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Claims without what is no text. */
export function texts(claims: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(claims).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
    ),
  );
}

/** An address. @param isProved whether the provider says that it is the user's; some say it by a text. */
export function email(address: unknown, isProved: unknown): Record<string, unknown> {
  if (typeof address !== 'string' || address === '') return {};
  return { email: address, email_verified: isProved === true || isProved === 'true' };
}

/** The names that a list of options has, each the scope of its own name. */
export function sameNames(names: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, name]));
}

/** A provider whose answer has the claims of OpenID Connect Core §5.1. */
export function readClaims({ user }: ProfileAnswers): ReadProfile {
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
