// Browser sessions: finds them, and ends them with everything bound to them.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import { type Frozen, sessionUid } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { type Collection, type Store, UniqueKeyError, type Write } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { FIRST_VERSION, type Login, type Presence, type Transfer } from '../../users/login.ts';
import { transferOf } from '../admission/exchange-context.ts';
import type { TokenLogin } from '../admission/second-factor.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import { endBackchannelRequests } from '../base/backchannel-requests.ts';
import type { Device } from '../base/request-extensions.ts';
import type { EndedSession, LogoutBrowser, LogoutChannels, SessionEndReason } from './logout-channels.ts';
import { forgetState, hasSessionManagement } from './session-management.ts';

interface EndOptions {
  reason: SessionEndReason;
  /** The user's own browser, if the session ends by a request of this browser. */
  browser?: LogoutBrowser | undefined;
  /** @see EndedSession.startedBy */
  startedBy?: string | undefined;
  // docs/understand/decisions/sessions-logout.md#if-two-users-log-in-in-two-tabs-the-last-login-wins
  /** Whether waiting requests stay and ask for a login: set when another user logs in at this browser. */
  requestsStay?: boolean;
}

interface EndAllOptions {
  reason: SessionEndReason;
  /** The `sid` of a session that stays with its tokens: that of the browser that asks. */
  keepSid?: string | undefined;
  /** @see EndOptions.requestsStay */
  requestsStay?: boolean;
  /** Whether to also revoke what a logout leaves: refresh tokens, and grants without a browser session. */
  refreshTokens: boolean;
}

export interface Sessions {
  /** The session of this browser; undefined when nobody is logged in. */
  current(ctx: Context): Promise<UserSession | undefined>;
  /** The sessions of a user, in every browser. */
  of(userId: string): Promise<UserSession[]>;
  /**
   * Whether a session exists and has not ended. A caller that binds a record to the session stores it first and
   * asks afterwards: if the session ends later, its end finds the record.
   */
  isOpen(sid: string): Promise<boolean>;
  /** The login that a grant was made for; undefined when the grant was revoked or has expired, or its application is gone. */
  grantOf(id: string): Promise<GrantLogin | undefined>;
  /** The login of an open session; its `authTime` is undefined when nobody proved to be there. */
  loginOf(sid: string): Promise<TokenLogin | undefined>;
  // docs/understand/decisions/sessions-logout.md#when-a-session-ends-its-codes-waiting-requests-and-tokens-end-with-it
  /**
   * Ends a session with its waiting requests, codes, tokens and challenges, then tells its applications. Refresh
   * tokens of `offline_access` stay (OIDC Back-Channel Logout 1.0 §2.7). Of concurrent calls only one tells the
   * applications.
   * @returns the URL to send the browser to, if there is one.
   */
  end(sid: string, options: EndOptions): Promise<string | undefined>;
  /**
   * Ends the sessions and the unfinished logins of a user, including approved CIBA requests whose tokens were not
   * fetched yet.
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
  /** @see TransferredSessions.holds */
  transferred: { holds(transfer: Transfer | undefined): Promise<boolean> };
}

export function createSessions(provider: Provider, deps: SessionsDependencies): Sessions {
  const artifacts = deps.store.collection('artifacts');
  const openSession = async (sid: string) => {
    const session = (await artifacts.findBy('uid', sid)).find(({ model }) => model === 'Session')?.payload;
    return session && (await deps.transferred.holds(transferOf(session))) ? session : undefined;
  };
  const end: Sessions['end'] = async (sid, { reason, browser, startedBy, requestsStay }) => {
    const ended = await removeSession(deps, sid, requestsStay === true, { reason, startedBy });
    // Challenges of the session end with it, except when another login replaces it in the same browser.
    if (ended !== undefined && requestsStay !== true)
      await deps.challenges.revokeOfSession(ended.userId, sid);
    return ended === undefined ? browser?.returnTo : deps.logoutChannels.notify(ended, browser);
  };
  return {
    current: async (ctx) => {
      const session = await provider.Session.get(ctx);
      return userSessionOf(session);
    },
    of: async (userId) =>
      (await artifacts.findBy('account', userId)).flatMap(({ model, payload }) => {
        const found = model === 'Session' ? userSessionOf(payload) : undefined;
        return found === undefined ? [] : [found];
      }),
    isOpen: async (sid) => (await openSession(sid)) !== undefined,
    grantOf: async (id) => {
      const grant = await grantInForce(deps, id);
      return grant && loginOfGrant(grant.payload);
    },
    loginOf: async (sid) => {
      const session = await openSession(sid);
      return session && loginOfSession(session);
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
      // An interaction whose login is finished could otherwise still make a session for up to an hour.
      const ending = others.filter(({ model }) => refreshTokens || model === 'Interaction');
      await Promise.all(ending.map(({ id }) => artifacts.delete(id)));
      await endBackchannelRequests(deps, userId);
      // Tokens that are stored nowhere end by their date (signed-tokens.ts). Where a session stays, those of it must, too.
      if (refreshTokens && keepSid === undefined) {
        const access_ended_at = new Date(deps.clock()).toISOString();
        await deps.store.collection('users').update(userId, (user) => ({ ...user, access_ended_at }));
      }
      return sids.length;
    },
    forget: (ctx) => {
      const options = { httpOnly: true, secure: true, sameSite: 'none', signed: false, path: '/' } as const;
      ctx.cookies.set(provider.cookieName('session'), null, options);
      if (hasSessionManagement(deps.config)) forgetState(ctx);
    },
  };
}

// Ends a single session: records the end, removes the session and what is bound to it, and removes what concurrent
// requests store in it afterwards.

interface EndingDependencies {
  store: Store;
  clock: Clock;
  logoutChannels: Pick<LogoutChannels, 'prepare'>;
}

type Artifacts = Collection<ArtifactRecord>;
type Artifact = Frozen<ArtifactRecord>;

/**
 * How long an ended session is remembered, seconds: longer than any request that has read the session before and
 * may still write it.
 */
const REMEMBERED_SECONDS = 120;

const endedKey = (sid: string) => `EndedSession:${sid}`;

/**
 * Removes a record that was written while its session ended. An end is stored before anything is removed, and this
 * function looks for it after the write, so that the record is deleted, whichever of the two was stored first.
 * @param record as it was just written.
 */
export async function removeIfSessionEnded(artifacts: Artifacts, record: ArtifactRecord): Promise<void> {
  if (!ENDING_MODELS.has(record.model)) return;
  const sid = sessionOf(record);
  if (sid === undefined || (await artifacts.get(endedKey(sid))) === undefined) return;
  await artifacts.delete(record.id);
}

/** The models that end with their session. Tokens are not among them: those of `offline_access` stay. */
const ENDING_MODELS = new Set(['Session', 'Interaction', 'AuthorizationCode', 'Grant']);

/** Returns the `sid` of the session that an artifact belongs to. */
function sessionOf({ model, payload }: Artifact): string | undefined {
  const uid = model === 'Session' ? payload.uid : sessionUid(payload);
  return typeof uid === 'string' ? uid : undefined;
}

/**
 * Removes a session and what is bound to it.
 * @returns the session, to exactly one of concurrent calls; undefined when nobody was logged in to it.
 */
async function removeSession(
  deps: EndingDependencies,
  sid: string,
  requestsStay: boolean,
  details: Pick<EndedSession, 'reason' | 'startedBy'>,
): Promise<EndedSession | undefined> {
  const artifacts = deps.store.collection('artifacts');
  const [found] = await artifacts.findBy('uid', sid);
  if (found === undefined) return undefined;
  const session = userSessionOf(found.payload);
  const ended = session && { sid, userId: session.userId, clientIds: session.clientIds, ...details };
  const notification = ended && (await deps.logoutChannels.prepare(ended));
  const isFirst = await recordEnd(deps, sid, notification?.writes ?? []);
  await artifacts.deleteBy('uid', sid);
  if (requestsStay) await detachRequests(artifacts, sid);
  await removeSessionArtifacts(artifacts, sid);
  if (!isFirst) return undefined;
  notification?.start();
  return ended;
}

/**
 * Stores in one commit that a session has ended and that its applications are to be told.
 * @returns false for all but the first of concurrent calls.
 */
async function recordEnd(
  { store, clock }: EndingDependencies,
  sid: string,
  notificationWrites: readonly Write[],
): Promise<boolean> {
  const expiresAt = epochSeconds(clock) + REMEMBERED_SECONDS;
  const insert = { id: endedKey(sid), model: 'EndedSession', payload: {}, expiresAt };
  try {
    await store.batch([{ collection: 'artifacts', insert }, ...notificationWrites]);
    return true;
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return false;
    throw thrown;
  }
}

/** Makes the requests that wait in a session wait for a login again. */
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
async function removeSessionArtifacts(artifacts: Artifacts, sid: string): Promise<void> {
  const sessionArtifacts = await artifacts.findBy('session', sid);
  const lasting = new Set(
    sessionArtifacts.filter(({ model }) => model === 'RefreshToken').map(({ payload }) => payload.grantId),
  );
  const ending = sessionArtifacts.filter(({ model, payload }) => {
    if (model === 'AuthorizationCode' || model === 'Interaction') return true;
    return !lasting.has(model === 'Grant' ? payload.jti : payload.grantId);
  });
  await Promise.all(ending.map(({ id }) => artifacts.delete(id)));
}

// The session of a logged-in user, as the rest of the server sees it.

/**
 * Returns a grant that was not revoked, has not expired, and whose application is there: with an application that is blocked or
 * removed ends what others do for it, whose tokens name its grant and not it.
 */
export async function grantInForce(
  { store, config }: Pick<SessionsDependencies, 'store' | 'config'>,
  id: string,
): Promise<Artifact | undefined> {
  const grant = await store.collection('artifacts').get(artifactKey('Grant', id));
  const client = grant && (await config.client(String(grant.payload.clientId)));
  return client && grant;
}

/** The login that a grant was made for. */
export interface GrantLogin {
  amr: readonly string[];
  /** The name of the connection, where it is known. */
  connection: string | undefined;
}

function loginOfGrant({ amr, ...members }: Artifact['payload']): GrantLogin {
  return { amr: Array.isArray(amr) ? amr.map(String) : [], connection: connectionOf(members) };
}

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
}

/** Returns the version of the credential that the login of a session or grant was verified with. */
export function credentialVersionOf(members: object): number {
  return (members as SessionLogin).credentialVersion ?? FIRST_VERSION;
}

/**
 * Returns {@link SecondFactor.factorsOf} as it was when the session began. One in which nobody has logged in counts as
 * older than any change.
 */
export function factorsOf(session: object): string {
  return (session as SessionLogin).factors ?? 'unknown';
}

/** Returns the name of the connection that a session's user logged in with, where it is known. */
export function connectionOf(session: object): string | undefined {
  return (session as SessionLogin).connection;
}

/** Returns {@link Login.presence} of the login that began a session; `absent` if nobody has logged in. */
export function presenceOf(session: object): Presence {
  return (session as SessionLogin).presence ?? 'absent';
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
  /** The id of the organization that it was last used for. */
  organization?: string | undefined;
}

/** The engine's session, as it has it in memory or in the store. */
interface EngineSession {
  uid?: unknown;
  accountId?: unknown;
  connection?: unknown;
  organization?: unknown;
  authorizations?: unknown;
  loginTs?: unknown;
  amr?: unknown;
}

/**
 * Describes a session of the engine.
 * @returns undefined when nobody is logged in to it.
 */
function userSessionOf(session: EngineSession): UserSession | undefined {
  const { uid, accountId, connection, authorizations, organization } = session;
  if (typeof uid !== 'string' || typeof accountId !== 'string') return undefined;
  const applications = Object.entries((authorizations ?? {}) as Record<string, { grantId?: string }>);
  return {
    sid: uid,
    userId: accountId,
    // An application without a grant did not take part in the session.
    clientIds: applications.filter(([, { grantId }]) => grantId !== undefined).map(([clientId]) => clientId),
    connection: typeof connection === 'string' ? connection : undefined,
    providerSession: providerSessionOf(session),
    organization: typeof organization === 'string' ? organization : undefined,
  };
}

/**
 * Returns the login of a session of the engine.
 * @returns undefined when nobody is logged in to it.
 */
function loginOfSession(session: EngineSession): TokenLogin | undefined {
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
