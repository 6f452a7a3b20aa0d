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
  presence: Presence;
  // docs/understand/decisions/authorize.md#auth_time-is-the-time-of-the-last-proof
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

// docs/understand/decisions/sessions-logout.md#each-login-says-whether-its-user-was-there
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
    presence: isUnattended(login) ? 'absent' : 'present',
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

// What only the user may do, and what it needs of their login. A token, a session or a device that stands for the user
// is enough to use applications, and for nothing that outlives it.

/** How old a login may be where a recent one is needed, seconds. */
export const FRESH_SECONDS = 600;

/** How far the clocks of two processes may differ, seconds. */
const SKEW = 60;

/**
 * What an act needs. `attended`: a login that nobody else could have made for the user ({@link Login.presence} is not
 * `absent`). `fresh`: also a proof that the user gave in the last {@link FRESH_SECONDS}, because a login that
 * was stolen must not be enough.
 */
export type ActNeed = 'attended' | 'fresh';

/** The acts that only the user may do. Every entrance to one of them asks {@link lackFor}. */
export const USER_ACTS = {
  /** A new password or user name. */
  password: 'fresh',
  /** A second factor of a user who is logged in: adding, removing, a new recovery code. */
  factor: 'fresh',
  passkey: 'fresh',
  email: 'fresh',
  phone: 'fresh',
  /** Linking another account, or unlinking it. */
  identity: 'fresh',
  /** A copy of everything that is stored of the user. */
  copy: 'fresh',
  deletion: 'fresh',
  /** What an administrator cannot undo, at the console. */
  dangerous_administration: 'fresh',
  /** The end of a change for whose beginning a fresh login was asked. */
  completion: 'attended',
  method_name: 'attended',
  profile: 'attended',
  connected_account: 'attended',
  /** The public key of a device, by which it authenticates. */
  device_credential: 'attended',
  /** The account page, and what it shows. */
  account_page: 'attended',
  /** Ending sessions, and withdrawing consents. */
  session: 'attended',
  /** The first second factor of a user, enrolled as part of a login. */
  first_factor: 'attended',
  /** Consent to what an application asks for. */
  consent: 'attended',
  /** A request of another device that waits for its user: a device code, CIBA. */
  approval: 'attended',
  /** The console's pages. */
  administration: 'attended',
} as const satisfies Record<string, ActNeed>;

export type UserAct = keyof typeof USER_ACTS;

/**
 * Acts that a user's token for the Management API allows to applications of the tenant's own alone, whatever the user
 * has consented to: who can log in to an account, and whether it exists, is not for others to change.
 */
export const FIRST_PARTY_ACTS: ReadonlySet<UserAct> = new Set([
  'password',
  'factor',
  'passkey',
  'email',
  'phone',
  'identity',
  'deletion',
  'device_credential',
]);

export interface Attendance {
  presence: Presence;
  /** Epoch seconds; undefined when it is not known. */
  authTime?: number | undefined;
}

/**
 * Returns what a login lacks for an act. The way out is the same for both: a login of the user's own (`prompt=login`, or the
 * `max_age` that is asked for).
 * @param now epoch seconds.
 */
export function lackFor(
  act: UserAct,
  { presence, authTime }: Attendance,
  now: number,
): 'presence' | 'recency' | undefined {
  if (presence !== 'present' && presence !== 'unconfirmed') return 'presence';
  if (USER_ACTS[act] !== 'fresh') return undefined;
  const age =
    now - (presence === 'present' ? (authTime ?? Number.NEGATIVE_INFINITY) : Number.NEGATIVE_INFINITY);
  // A time in the future was not measured with this clock.
  return age <= FRESH_SECONDS && age >= -SKEW ? undefined : 'recency';
}

/** Whether nobody was at a login, so that it is enough for none of the {@link USER_ACTS}. */
export function isUnattended(login: Pick<Login, 'presence'>): boolean {
  return lackFor('profile', login, 0) === 'presence';
}
