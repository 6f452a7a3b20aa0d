// A login: somebody has proved who they are. Each way in states the same of it, and whoever makes a session or
// tokens of it asks first, and again when they are stored, whether it still holds.

/** Who has proved who they are, and how. */
export interface Login {
  userId: string;
  /** The name of the connection that the user came by. */
  connection: string;
  /** Authentication methods (RFC 8176 §2), such as `pwd`, `otp`, `sms`, `mfa`. */
  amr: readonly string[];
  /** Authentication context class (OpenID Connect Core §2), where the login met one. */
  acr?: string | undefined;
  /** When the last proof was given, epoch seconds. */
  authTime: number;
  /** Whether that is only when the user came back from elsewhere: nobody says when they were asked there who they are. */
  isTimeUnproved?: boolean | undefined;
  /** Where from it was given. */
  ip: string;
  /** The version of the user's credential that the proof was judged by: a password set since then ends the login. */
  credentialVersion: number;
  /** What ends the session at the provider that the user came from, where its protocol needs that. */
  providerSession?: Readonly<Record<string, string>> | undefined;
  /** When the session at that provider ends, and this one with it, epoch seconds, where it says so. */
  sessionEndsAt?: number | undefined;
  /** Where the session is one that an application hands over to a browser. */
  transfer?: Transfer | undefined;
}

/** How a session was handed over. */
export interface Transfer {
  /** The application that it was handed over by. */
  clientId: string;
  /** Epoch seconds. */
  at: number;
  /** Where the application had asked from: the address, and the user agent. */
  ip: string;
  userAgent: string;
  /** The scopes that it had asked for; undefined in what was handed over before they were kept. */
  scopes?: readonly string[];
  /** The key of the refresh token that it was handed over for, where it was for one. */
  parent?: string;
  /** Who acts for the user in it (RFC 8693 §4.1), where anybody does. */
  act?: Readonly<Record<string, unknown>>;
}

/** The version of a credential whose password was never set anew, and of no credential at all. */
export const FIRST_VERSION = 0;

/** A login whose user has given a second factor beside. @param given with it, and what it proves. */
export function withSecondFactor(
  login: Login,
  given: Required<Pick<Login, 'amr' | 'acr' | 'authTime' | 'ip'>>,
): Login {
  return {
    ...login,
    ...given,
    isTimeUnproved: false,
    amr: [...new Set([...login.amr, ...given.amr, 'mfa'])],
  };
}

/**
 * What is left of a login's methods when it becomes another user's: a second factor is its own user's alone. Of one that had
 * two, only a password is known to be the first.
 */
export function methodsOfFirstFactor(amr: readonly string[]): string[] {
  return amr.filter((one) => !amr.includes('mfa') || one === 'pwd');
}
