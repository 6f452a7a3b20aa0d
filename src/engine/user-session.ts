// The session of a logged-in user, as the rest of the server sees it.
import type { Login } from '../users/login.ts';
import { credentialVersionOf, factorsOf, presenceOf, providerSessionOf } from './browser-login.ts';
import type { TokenLogin } from './second-factor.ts';

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
