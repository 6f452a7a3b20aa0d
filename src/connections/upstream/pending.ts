// Logins that wait for an upstream provider's answer. State, nonce, PKCE verifier and the waiting request are one record
// that is used once and in the browser alone that the login began in: an answer that somebody else got, planted in a
// victim's browser, logs nobody in.
import type { Context } from 'koa';
import { browserCookie } from '../../http/browser-cookie.ts';
import type { Challenges } from '../../protection/challenges.ts';
import { createWaitingList } from '../../protection/waiting.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Login } from '../../users/login.ts';
import type { Connecting } from '../connected/connecting.ts';

/** A login that waits for its answer. */
export interface PendingLogin {
  /** The waiting authorization request, or the account that is being connected. */
  uid: string;
  clientId: string;
  /** The connection's id: another one of the same name is another provider. */
  connectionId: string;
  nonce: string;
  codeVerifier: string;
  /** From when on its user must have proved at the provider who they are, epoch seconds, where that was asked for. */
  freshSince?: number;
  /** The account that is being connected, where it is no login. */
  connecting?: Connecting;
}

/** How it ended: a login, or the error that the application is told. */
export type UpstreamOutcome = { login: Login } | { error: string; description: string };

export interface PendingLogins {
  /** Keeps a login for this browser; one of the same request that still waits is over. @returns its `state`. */
  begin(
    ctx: Context,
    login: Omit<PendingLogin, 'nonce' | 'codeVerifier'>,
  ): Promise<PendingLogin & { state: string }>;
  /**
   * The login that an answer is for, which is thereby used up: of any number of racers exactly one gets it.
   * @returns undefined when none waits, or not in this browser; another browser uses up nothing.
   */
  take(ctx: Context, state: string): Promise<PendingLogin | undefined>;
  /** Keeps how a login ended until the browser is back at its request. @returns a ticket for it. */
  keepOutcome(ctx: Context, uid: string, outcome: UpstreamOutcome): Promise<string>;
  /** How the login of a request ended; once, and in its own browser. */
  takeOutcome(ctx: Context, uid: string, ticket: string): Promise<UpstreamOutcome | undefined>;
}

const STATE = 'upstream_login';
const OUTCOME = 'upstream_outcome';
/** How long the provider's own pages may take, seconds. */
const TTL = 3600;
const OUTCOME_TTL = 120;
/** Limits on what waits, because anybody can begin a login. */
const WAITING = { most: 10_000, mostOfAddress: 600, ttlSeconds: TTL };

/**
 * `None`: providers may answer by a form that their page posts. 30 days from its last use: two tabs that begin at once in a
 * browser without it would get two, and the first login none.
 */
const BROWSER = browserCookie('__Host-gatehouse_upstream', { sameSite: 'none', ttlSeconds: 30 * 86_400 });

interface Bound {
  /** The hash of {@link BROWSER}'s secret. */
  browser: string;
}

/** The waiting logins of a tenant. */
export function pendingLogins(deps: { challenges: Challenges; clock: Clock; random: Random }): PendingLogins {
  const { challenges, random } = deps;
  const waiting = createWaitingList(WAITING, deps.clock);
  const take = async <T>(ctx: Context, purpose: string, ticket: string): Promise<T | undefined> => {
    const kept = (await challenges.peekTicket<T & Bound>(purpose, ticket))?.data;
    // Looked at before it is used up: another browser cannot end a login that is not its own.
    if (kept === undefined || !BROWSER.bringsHashed(ctx, kept.browser)) return undefined;
    return (await challenges.spendTicket(purpose, ticket)) === undefined ? undefined : kept;
  };
  return {
    begin: async (ctx, login) => {
      const pending = { ...login, nonce: secret(random), codeVerifier: secret(random) };
      const gone = waiting.add(login.uid, ctx.ip);
      await Promise.all(gone.map((uid) => challenges.discard(STATE, uid)));
      const data = { ...pending, browser: sha256(BROWSER.keep(ctx, random)) };
      const issued = await challenges.issueTicket({
        purpose: STATE,
        subject: login.uid,
        ttlSeconds: TTL,
        data,
      });
      return { ...pending, state: issued.secret };
    },
    take: async (ctx, state) => {
      const kept = await take<PendingLogin>(ctx, STATE, state);
      if (kept !== undefined) waiting.done(kept.uid);
      return kept;
    },
    keepOutcome: async (ctx, uid, outcome) => {
      const data = { ...outcome, uid, browser: sha256(BROWSER.keep(ctx, random)) };
      const userId = 'login' in outcome ? outcome.login.userId : undefined;
      const kept = { purpose: OUTCOME, subject: uid, ttlSeconds: OUTCOME_TTL, data, userId };
      return (await challenges.issueTicket(kept)).secret;
    },
    takeOutcome: async (ctx, uid, ticket) => {
      const met = await challenges.peekTicket(OUTCOME, ticket);
      return met?.data.uid === uid ? take<UpstreamOutcome>(ctx, OUTCOME, ticket) : undefined;
    },
  };
}

/** 256 bits: a code verifier (RFC 7636 §4.1), or a nonce. */
function secret(random: Random): string {
  return random(32).toString('base64url');
}
