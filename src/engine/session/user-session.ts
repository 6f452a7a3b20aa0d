// The session of a logged-in user, as the rest of the server sees it.
import { FIRST_VERSION, type Login, type Presence, readPresence } from '../../users/login.ts';
import type { TokenLogin } from '../admission/second-factor.ts';
import { transferOf } from '../admission/transferred-session.ts';
import type { Device } from '../base/device.ts';

/** The members that a session has for its login in addition to the engine's own. */
export interface SessionLogin {
  connection?: string;
  credentialVersion?: number;
  factors?: string;
  /** The devices that began it and used it last. */
  device?: Device;
  /** Epoch seconds of the last authorization in it. */
  lastUsed?: number;
  organization?: string;
  providerSession?: Login['providerSession'];
  presence?: Presence;
  /** In sessions of older releases, in place of `presence`. */
  isTimeUnproved?: boolean | undefined;
}

/** Returns the version of the credential that the login of a session or grant was verified with. */
export function credentialVersionOf(members: object): number {
  return (members as SessionLogin).credentialVersion ?? FIRST_VERSION;
}

/**
 * Returns {@link SecondFactor.factorsOf} as it was when the session began. Sessions of older releases lack it and
 * count as older than any change.
 */
export function factorsOf(session: object): string {
  return (session as SessionLogin).factors ?? 'unknown';
}

/** Returns the name of the connection that a session's user logged in with, where it is known. */
export function connectionOf(session: object): string | undefined {
  return (session as SessionLogin).connection;
}

/**
 * Returns {@link Login.presence} of the login that began a session. A session of an older release says whether it
 * was handed over, and whether the time of its login is unproved.
 */
export function presenceOf(session: object): Presence {
  const { presence, isTimeUnproved } = session as SessionLogin;
  if (presence !== undefined) return readPresence(presence);
  if (transferOf(session) !== undefined) return 'absent';
  return isTimeUnproved === true ? 'unconfirmed' : 'present';
}

/** Returns {@link Login.providerSession} of the login that began a session. */
export function providerSessionOf(session: object): Login['providerSession'] {
  return (session as SessionLogin).providerSession;
}

/** A session with a logged-in user. */
export interface UserSession {
  /** The session id, as in the `sid` of its ID tokens. */
  sid: string;
  userId: string;
  /** The client_ids of the applications that got a grant in it. */
  clientIds: readonly string[];
  /** The connection that the user logged in with, if known. */
  connection?: string | undefined;
  /** @see Login.providerSession */
  providerSession?: Login['providerSession'];
}

/** The engine's session, as it has it in memory or in the store. */
interface EngineSession {
  uid?: unknown;
  accountId?: unknown;
  connection?: unknown;
  authorizations?: unknown;
  loginTs?: unknown;
  amr?: unknown;
}

/**
 * Describes a session of the engine.
 * @returns undefined when nobody is logged in to it.
 */
export function userSessionOf(session: EngineSession): UserSession | undefined {
  const { uid, accountId, connection, authorizations } = session;
  if (typeof uid !== 'string' || typeof accountId !== 'string') return undefined;
  const applications = Object.entries((authorizations ?? {}) as Record<string, { grantId?: string }>);
  return {
    sid: uid,
    userId: accountId,
    // An application without a grant did not take part in the session.
    clientIds: applications.filter(([, { grantId }]) => grantId !== undefined).map(([clientId]) => clientId),
    connection: typeof connection === 'string' ? connection : undefined,
    providerSession: providerSessionOf(session),
  };
}

/**
 * Returns the login of a session of the engine.
 * @returns undefined when nobody is logged in to it.
 */
export function loginOfSession(session: EngineSession): TokenLogin | undefined {
  const { uid, accountId, loginTs, amr } = session;
  if (typeof uid !== 'string' || typeof accountId !== 'string') return undefined;
  return {
    userId: accountId,
    amr: Array.isArray(amr) ? amr.map(String) : [],
    credentialVersion: credentialVersionOf(session),
    factors: factorsOf(session),
    presence: presenceOf(session),
    authTime: typeof loginTs === 'number' ? loginTs : undefined,
    sessionId: uid,
  };
}
