// Browser sessions: finds them, and ends them with everything bound to them (session-ending.ts).
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Transfer } from '../../users/login.ts';
import type { TokenLogin } from '../admission/second-factor.ts';
import { transferOf } from '../admission/transferred-session.ts';
import { endBackchannelRequests } from '../base/backchannel-requests.ts';
import type { LogoutBrowser, LogoutChannels, SessionEndReason } from './logout-channels.ts';
import { removeSession, sessionOf } from './session-ending.ts';
import { forgetState, hasSessionManagement } from './session-management.ts';
import { loginOfSession, type UserSession, userSessionOf } from './user-session.ts';

interface EndOptions {
  reason: SessionEndReason;
  /** The user's own browser, if the session ends by a request of this browser. */
  browser?: LogoutBrowser | undefined;
  /** @see EndedSession.startedBy */
  startedBy?: string | undefined;
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
  /** The login of an open session; its `authTime` is undefined when nobody proved to be there. */
  loginOf(sid: string): Promise<TokenLogin | undefined>;
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

/** Makes the functions that read and end the sessions of a provider. */
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
      // Tokens that are stored nowhere end by their date (ended-tokens.ts). Where a session stays, those of it must, too.
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
