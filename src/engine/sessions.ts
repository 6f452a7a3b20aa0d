// Browser sessions: reading the current one, and ending sessions with everything bound to them.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Challenges } from '../protection/challenges.ts';
import { sessionUid } from '../records/artifacts.ts';
import type { ArtifactRecord } from '../records/engine.ts';
import type { Frozen } from '../records/record.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import { type Collection, type Store, UniqueKeyError, type Write } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Login, Transfer } from '../users/login.ts';
import { endBackchannelOf } from './backchannel-requests.ts';
import { providerSessionOf } from './browser-login.ts';
import { transferOf } from './handed-over.ts';
import type { EndedSession, LogoutBrowser, LogoutChannels, SessionEnd } from './logout-channels.ts';
import { forgetState, hasSessionManagement } from './session-management.ts';

/** A session with a logged-in user. */
export interface UserSession {
  /** The session id, as in the `sid` of its ID tokens. */
  sid: string;
  userId: string;
  /** The client_ids of the applications that were authorized in it. */
  clientIds: readonly string[];
  /** The connection that the user logged in with, if known. */
  connection?: string | undefined;
  /** @see Login.providerSession */
  providerSession?: Login['providerSession'];
}

interface EndOptions {
  reason: SessionEnd;
  /** The user's own browser, if the end comes by a request of it. */
  browser?: LogoutBrowser | undefined;
  /** @see EndedSession.startedBy */
  startedBy?: string | undefined;
  /** Keeps waiting requests, which then ask for a login: another user logs in at this browser. */
  requestsStay?: boolean;
}

interface EndAllOptions {
  reason: SessionEnd;
  /** The `sid` of a session that stays, with its tokens: that of the browser that asks. */
  keepSid?: string | undefined;
  /** @see EndOptions.requestsStay */
  requestsStay?: boolean;
  /** Whether to revoke what outlives a logout, too: refresh tokens, and grants without a browser. */
  refreshTokens: boolean;
}

export interface Sessions {
  /** The session of this browser; undefined when nobody is logged in. */
  current(ctx: Context): Promise<UserSession | undefined>;
  /** The sessions of a user, in every browser. */
  of(userId: string): Promise<UserSession[]>;
  /** Whether a session exists and has not ended. Store first, then ask: an end after that finds what was stored. */
  isOpen(sid: string): Promise<boolean>;
  /**
   * Ends a session with its waiting requests, codes, tokens and what else was begun in it, then tells its participants. Refresh tokens of
   * `offline_access` stay (OIDC Back-Channel Logout 1.0 §2.7). Of racing calls only one tells them.
   * @returns where the browser goes now, if there is one.
   */
  end(sid: string, options: EndOptions): Promise<string | undefined>;
  /**
   * Ends the sessions of a user and unfinished logins, those that were approved elsewhere and not fetched yet, too.
   * @returns how many sessions were ended.
   */
  endAllOf(userId: string, options: EndAllOptions): Promise<number>;
  /** Removes the browser's session cookie. */
  forget(ctx: Context): void;
}

interface SessionsDependencies {
  config: Config;
  store: Store;
  challenges: Challenges;
  clock: Clock;
  logoutChannels: LogoutChannels;
  /** @see HandedSessions.holds */
  handed: { holds(transfer: Transfer | undefined): Promise<boolean> };
}

type Artifacts = Collection<ArtifactRecord>;
type Artifact = Frozen<ArtifactRecord>;

/**
 * How long ended sessions are remembered, seconds: longer than any request that read the session before and may still
 * write it.
 */
const REMEMBERED = 120;

const endedKey = (sid: string) => `EndedSession:${sid}`;

/** The sessions of one provider. */
export function createSessions(provider: Provider, deps: SessionsDependencies): Sessions {
  const artifacts = deps.store.collection('artifacts');
  const end: Sessions['end'] = async (sid, { reason, browser, startedBy, requestsStay }) => {
    const ended = await takeSession(deps, sid, requestsStay === true, { reason, startedBy });
    // Challenges that were begun in the session end with it, except where another login takes its place in the same
    // browser.
    if (ended !== undefined && requestsStay !== true)
      await deps.challenges.revokeOfSession(ended.userId, sid);
    return ended === undefined ? browser?.returnTo : deps.logoutChannels.tell(ended, browser);
  };
  return {
    current: async (ctx) => {
      const session = await provider.Session.get(ctx);
      return describe(session);
    },
    of: async (userId) =>
      (await artifacts.findBy('account', userId)).flatMap(({ model, payload }) => {
        const found = model === 'Session' ? describe(payload) : undefined;
        return found === undefined ? [] : [found];
      }),
    isOpen: async (sid) => {
      const [found] = await artifacts.findBy('uid', sid);
      return found !== undefined && deps.handed.holds(transferOf(found.payload));
    },
    end,
    endAllOf: async (userId, { reason, keepSid, refreshTokens, requestsStay = false }) => {
      const sids = (await artifacts.findBy('account', userId))
        .filter(({ model }) => model === 'Session')
        .map(({ payload }) => String(payload.uid))
        .filter((sid) => sid !== keepSid);
      await Promise.all(sids.map((sid) => end(sid, { reason, requestsStay })));
      const others = (await artifacts.findBy('account', userId)).filter(
        (record) => keepSid === undefined || sessionOf(record) !== keepSid,
      );
      // Interactions with a finished login would outlive the sessions by an hour.
      const doomed = others.filter(({ model }) => refreshTokens || model === 'Interaction');
      await Promise.all(doomed.map(({ id }) => artifacts.delete(id)));
      await endBackchannelOf(deps, userId);
      return sids.length;
    },
    forget: (ctx) => {
      const options = { httpOnly: true, secure: true, sameSite: 'none', signed: false, path: '/' } as const;
      ctx.cookies.set(provider.cookieName('session'), null, options);
      if (hasSessionManagement(deps.config)) forgetState(ctx);
    },
  };
}

/**
 * Removes a record that was written while its session ended. The end is recorded before anything is removed and checked
 * here after the write, so that nothing stays whichever is last.
 * @param record as it was just written.
 */
export async function removeIfOvertaken(artifacts: Artifacts, record: ArtifactRecord): Promise<void> {
  if (!OVERTAKEN.has(record.model)) return;
  const sid = sessionOf(record);
  if (sid === undefined || (await artifacts.get(endedKey(sid))) === undefined) return;
  await artifacts.delete(record.id);
}

/** Not tokens: those of `offline_access` outlive their session. */
const OVERTAKEN = new Set(['Session', 'Interaction', 'AuthorizationCode', 'Grant']);

/** The session of an artifact. */
function sessionOf({ model, payload }: Artifact): string | undefined {
  const uid = model === 'Session' ? payload.uid : sessionUid(payload);
  return typeof uid === 'string' ? uid : undefined;
}

/** Removes a session. @returns it, for exactly one of racing calls; nothing for one that nobody was logged in to. */
async function takeSession(
  deps: SessionsDependencies,
  sid: string,
  requestsStay: boolean,
  why: Pick<EndedSession, 'reason' | 'startedBy'>,
): Promise<EndedSession | undefined> {
  const artifacts = deps.store.collection('artifacts');
  const [found] = await artifacts.findBy('uid', sid);
  if (found === undefined) return undefined;
  const session = describe(found.payload);
  const ended = session && { sid, userId: session.userId, clientIds: session.clientIds, ...why };
  const announced = ended && (await deps.logoutChannels.announce(ended));
  const isFirst = await recordEnd(deps, sid, announced?.writes ?? []);
  await artifacts.deleteBy('uid', sid);
  if (requestsStay) await detachRequests(artifacts, sid);
  await removeBound(artifacts, sid);
  if (!isFirst) return undefined;
  announced?.begin();
  return ended;
}

/**
 * Records in one commit that a session has ended and that its participants are to be told.
 * @returns false for all but the first of racing calls.
 */
async function recordEnd(
  { store, clock }: SessionsDependencies,
  sid: string,
  also: readonly Write[],
): Promise<boolean> {
  const expiresAt = epochSeconds(clock) + REMEMBERED;
  const insert = { id: endedKey(sid), model: 'EndedSession', payload: {}, expiresAt };
  try {
    await store.batch([{ collection: 'artifacts', insert }, ...also]);
    return true;
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return false;
    throw thrown;
  }
}

/** Turns requests that wait in a session back to waiting for a login. */
async function detachRequests(artifacts: Artifacts, sid: string): Promise<void> {
  const waiting = (await artifacts.findBy('session', sid)).filter(({ model }) => model === 'Interaction');
  await Promise.all(
    waiting.map(({ id }) =>
      artifacts.update(id, (next) => {
        const { session: _, result: _answered, lastSubmission: _kept, ...payload } = next.payload;
        const prompt = { name: 'login', reasons: ['no_session'], details: {} };
        return { ...next, payload: { ...payload, prompt } };
      }),
    ),
  );
}

/** Removes what is bound to a session, except grants with a refresh token and their access tokens. */
async function removeBound(artifacts: Artifacts, sid: string): Promise<void> {
  const bound = await artifacts.findBy('session', sid);
  const lasting = new Set(
    bound.filter(({ model }) => model === 'RefreshToken').map(({ payload }) => payload.grantId),
  );
  const doomed = bound.filter(({ model, payload }) => {
    if (model === 'AuthorizationCode' || model === 'Interaction') return true;
    return !lasting.has(model === 'Grant' ? payload.jti : payload.grantId);
  });
  await Promise.all(doomed.map(({ id }) => artifacts.delete(id)));
}

/** The engine's session, in memory or stored. */
interface EngineSession {
  uid?: unknown;
  accountId?: unknown;
  connection?: unknown;
  authorizations?: unknown;
}

/** @returns undefined when nobody is logged in. */
function describe(session: EngineSession): UserSession | undefined {
  const { uid, accountId, connection, authorizations } = session;
  if (typeof uid !== 'string' || typeof accountId !== 'string') return undefined;
  const applications = Object.entries((authorizations ?? {}) as Record<string, { grantId?: string }>);
  return {
    sid: uid,
    userId: accountId,
    // Without a grant an application did not take part.
    clientIds: applications.filter(([, { grantId }]) => grantId !== undefined).map(([clientId]) => clientId),
    connection: typeof connection === 'string' ? connection : undefined,
    providerSession: providerSessionOf(session),
  };
}
