// The sessions of users, as the Management API shows them. A session is identified by its `sid`, which is no
// secret: ID tokens and logout tokens contain it. The cookie has another value, of which the store keeps a hash.
import type { CookieMode } from '../../capabilities/actions/session-methods.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { absoluteEnd, boundsOf, isSessionExpired } from '../admission/lifetimes.ts';
import type { Device } from '../base/request-extensions.ts';
import { isoDate } from './refresh-directory.ts';
import { sessionMetadata, setSessionMetadata } from './session-metadata.ts';
import type { Sessions } from './sessions.ts';

export interface SessionView {
  id: string;
  user_id: string;
  created_at: string | null;
  updated_at: string | null;
  authenticated_at: string | null;
  idle_expires_at: string | null;
  expires_at: string | null;
  last_interacted_at: string | null;
  device?: Device;
  clients: { client_id: string }[];
  authentication: { methods: { name: string; timestamp?: string }[] };
  cookie: { mode: CookieMode };
  session_metadata?: Readonly<Record<string, unknown>>;
}

export interface SessionDirectory {
  /** Returns the open sessions of a user, the oldest first. */
  of(userId: string): Promise<SessionView[]>;
  get(id: string): Promise<SessionView | undefined>;
  /** Ends a session and tells its applications. */
  end(id: string): Promise<void>;
  /** Ends all sessions of a user. @param refreshTokens whether to revoke the user's refresh tokens too. */
  endAllOf(userId: string, refreshTokens: boolean): Promise<void>;
  /**
   * Replaces the metadata of a session; undefined removes it.
   * @returns undefined where there is no such session.
   */
  setMetadata(
    id: string,
    metadata: Readonly<Record<string, unknown>> | undefined,
  ): Promise<SessionView | undefined>;
}

interface SessionDirectoryDependencies {
  store: Store;
  config: Config;
  /** The steady clock, by which records of the store expire. */
  clock: Clock;
  wallClock: Clock;
  sessions: Pick<Sessions, 'end' | 'endAllOf'>;
  /** Returns the authentication method of a connection, such as `pwd`; undefined where it is not known. */
  firstMethod(connection: string): Promise<string | undefined>;
}

const HOUR = 3600;

export function sessionDirectory(deps: SessionDirectoryDependencies): SessionDirectory {
  const { store, config, clock, wallClock, sessions } = deps;
  const artifacts = store.collection('artifacts');
  const isOpen = ({ model, payload }: Frozen<ArtifactRecord>) =>
    model === 'Session' &&
    typeof payload.accountId === 'string' &&
    !isSessionExpired(config, wallClock, payload);
  const find = async (id: string) => (await artifacts.findBy('uid', id)).find(isOpen);
  const methodOf = async ({ connection }: Payload) =>
    typeof connection === 'string' ? deps.firstMethod(connection) : undefined;
  const view = async (session: Frozen<ArtifactRecord>) => {
    return describeSession(session.payload, await methodOf(session.payload), {
      lifetime: config.settings().tenant.session_lifetime * HOUR,
      metadata: await sessionMetadata(deps, String(session.payload.uid)),
    });
  };
  const get: SessionDirectory['get'] = async (id) => {
    const session = await find(id);
    return session && view(session);
  };
  return {
    of: async (userId) => {
      const found = (await artifacts.findBy('account', userId)).filter(isOpen);
      return Promise.all(found.map(view));
    },
    get,
    end: async (id) => {
      await sessions.end(id, { reason: 'session-revoked' });
    },
    endAllOf: async (userId, refreshTokens) => {
      await sessions.endAllOf(userId, { reason: 'session-revoked', refreshTokens });
    },
    setMetadata: async (id, metadata) => {
      if ((await find(id)) === undefined) return undefined;
      await setSessionMetadata({ store, config, clock }, id, metadata);
      return get(id);
    },
  };
}

type Payload = Readonly<Record<string, unknown>>;

/**
 * Describes a session as the Management API shows it.
 * @param payload the engine's session.
 * @param method the authentication method of its connection.
 */
export function describeSession(
  payload: Payload,
  method: string | undefined,
  { lifetime, metadata }: { lifetime: number; metadata: SessionView['session_metadata'] },
): SessionView {
  const { uid, accountId, iat, exp, loginTs, lastUsed, device, amr } = payload;
  const login = typeof loginTs === 'number' ? loginTs : undefined;
  const hasSecondFactor = Array.isArray(amr) && amr.includes('mfa');
  const proofs = [method, ...(hasSecondFactor ? ['mfa'] : [])].filter((name) => name !== undefined);
  const at = login === undefined ? {} : { timestamp: isoDate(login) ?? '' };
  return {
    id: String(uid),
    user_id: String(accountId),
    created_at: isoDate(iat),
    updated_at: isoDate(lastUsed),
    authenticated_at: isoDate(loginTs),
    idle_expires_at: isoDate(exp),
    expires_at:
      login === undefined ? null : isoDate(Math.min(login + lifetime, absoluteEnd(boundsOf(payload)))),
    last_interacted_at: isoDate(lastUsed),
    ...(device === undefined ? {} : { device: device as Device }),
    clients: applicationsOf(payload).map((client_id) => ({ client_id })),
    // Only the time of the last method is known.
    authentication: {
      methods: proofs.map((name, index) => ({ name, ...(index === proofs.length - 1 ? at : {}) })),
    },
    cookie: { mode: payload.cookieMode === 'non-persistent' ? 'non-persistent' : 'persistent' },
    ...(metadata === undefined ? {} : { session_metadata: metadata }),
  };
}

/** Returns the client_ids of the applications that took part in a session: those with a grant in it. */
function applicationsOf({ authorizations }: Payload): string[] {
  return Object.entries((authorizations ?? {}) as Record<string, { grantId?: string }>)
    .filter(([, { grantId }]) => grantId !== undefined)
    .map(([clientId]) => clientId);
}
