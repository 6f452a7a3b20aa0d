// A login: the proof of who a user is. Every connection and grant produces the same record. Before a session or tokens are made
// of it, and again when they are stored, it is checked whether the login is still valid.

/** Who has logged in, and how. */
export interface Login {
  userId: string;
  /** The name of the connection. */
  connection: string;
  /** Authentication methods (RFC 8176 §2), such as `pwd`, `otp`, `sms`, `mfa`. */
  amr: readonly string[];
  /** The authentication context class that the login satisfies (OpenID Connect Core §2). */
  acr?: string | undefined;
  /** Whether the user was there. */
  presence: Presence;
  // docs/decisions/authorize.md#auth_time-is-the-time-of-the-last-proof
  /** When the last proof was given, epoch seconds; not that of a proof unless `presence` is `present`. */
  authTime: number;
  /** The IP address of the last proof. */
  ip: string;
  /** The version of the user's credential before the proof was verified. A password set since then ends the login. */
  credentialVersion: number;
  /** The data that ends the session at the upstream provider, if its protocol needs any. */
  providerSession?: Readonly<Record<string, string>> | undefined;
  /** When the provider says that its session ends, which also ends this one; epoch seconds. */
  sessionEndsAt?: number | undefined;
  /** Set if an application hands the session over to a browser. */
  transfer?: Transfer | undefined;
}

// docs/decisions/sessions-logout.md#each-login-says-whether-its-user-was-there
/**
 * Whether the user was at a login, from the most to the least that it says of them. `present`: they gave a proof at
 * `authTime`, here or at their provider. `unconfirmed`: they came back from a provider that does not say when they
 * authenticated there, perhaps without being asked. `absent`: something else stood for them, such as a token, or a
 * device that is not where the tokens go.
 */
export const PRESENCES = ['present', 'unconfirmed', 'absent'] as const;

/** @see PRESENCES */
export type Presence = (typeof PRESENCES)[number];

/** Returns the presence that a token states. One that states none is of nobody who was there. */
export function readPresence(stated: unknown): Presence {
  return PRESENCES.find((one) => one === stated) ?? 'absent';
}

/** How a session was handed over. */
export interface Transfer {
  /** The application that handed it over. */
  clientId: string;
  /** Epoch seconds. */
  at: number;
  /** The IP address and user agent of the application's request. */
  ip: string;
  userAgent: string;
  /** The requested scopes. */
  scopes: readonly string[];
  /** The key of the refresh token that the transfer token was issued for, if any. */
  parent?: string;
  /** The actor, if somebody acts for the user (RFC 8693 §4.1). */
  act?: Readonly<Record<string, unknown>>;
}

/** The version of a credential whose password was never changed, and of a user without a credential. */
export const FIRST_VERSION = 0;

/**
 * Returns a login after a second factor. The factor shows that the user whom a provider has sent is there. Where
 * nobody was, it does not replace the first factor that nobody gave.
 * @param factor the members that the second factor changes.
 */
export function withSecondFactor(
  login: Login,
  factor: Required<Pick<Login, 'amr' | 'acr' | 'authTime' | 'ip'>>,
): Login {
  return {
    ...login,
    ...factor,
    presence: login.presence === 'absent' ? 'absent' : 'present',
    amr: [...new Set([...login.amr, ...factor.amr, 'mfa'])],
  };
}

/**
 * Returns the methods of a login that stay when it becomes a login as another user: second factors do not, as they belong to
 * their own user. Of several methods with `mfa`, only `pwd` is known to be the first factor.
 */
export function methodsOfFirstFactor(amr: readonly string[]): string[] {
  return amr.filter((one) => !amr.includes('mfa') || one === 'pwd');
}
