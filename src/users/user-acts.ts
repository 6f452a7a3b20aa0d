// What only the user may do, and what it needs of their login. A token, a session or a device that stands for the user
// is enough to use applications, and for nothing that outlives it.
import type { Login, Presence } from './login.ts';

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
  /** The name of an authentication method. */
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

/** What a login says of its user. */
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
