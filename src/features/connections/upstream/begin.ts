// Begins a login at an upstream provider for a waiting authorization request.
import type { Context } from 'koa';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import type { WaitingRequest } from '../../../engine/authorize/waiting-requests.ts';
import { upstreamParameters } from '../../../engine/base/request-extensions.ts';
import { browserCookie } from '../../../http/server/browser-cookie.ts';
import type { Connection } from '../../../records/collections.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import { type Random, sha256 } from '../../../runtime/secrets.ts';
import type { Login } from '../../../users/login.ts';
import type { AccountConnection } from '../connected/connecting.ts';
import {
  asksForLogin,
  type RedirectStrategy,
  type UpstreamDependencies,
  type UpstreamRedirect,
} from '../redirect.ts';

// Logins that wait for an upstream provider's answer. State, nonce, PKCE verifier and the waiting request are one record,
// which is used once and only in the browser that began the login. So an attacker cannot log a victim in to the attacker's
// account by planting an answer in the victim's browser (login CSRF, RFC 6749 §10.12).

/** A login that waits for the provider's answer. */
export interface PendingLogin {
  /** The id of the waiting authorization request, or of the account connection in progress. */
  uid: string;
  clientId: string;
  /** The connection's id, not its name: a deleted connection's name may be given to another provider. */
  connectionId: string;
  nonce: string;
  codeVerifier: string;
  /** The earliest accepted time of authentication at the provider, epoch seconds, if the request has such a limit. */
  freshSince?: number;
  /** Set if the user connects an account, and does not log in. */
  connecting?: AccountConnection;
}

export type UpstreamOutcome = { login: Login } | { error: string; description: string };

export interface PendingLogins {
  /** Stores a login for this browser, in place of one of the same request that still waits. @returns it with its `state`. */
  begin(
    ctx: Context,
    login: Omit<PendingLogin, 'nonce' | 'codeVerifier'>,
  ): Promise<PendingLogin & { state: string }>;
  /**
   * Returns the login that an answer is for, and uses its state up: of several concurrent calls, exactly one gets it.
   * @returns undefined when no login of this browser waits with that state; a call from another browser uses nothing up.
   */
  take(ctx: Context, state: string): Promise<PendingLogin | undefined>;
  /** Stores the result of a login until the browser is back at the waiting request. @returns a ticket for it. */
  storeOutcome(ctx: Context, uid: string, outcome: UpstreamOutcome): Promise<string>;
  /** Returns the result for a ticket of a request, once, and only in the browser that it was stored for. */
  takeOutcome(ctx: Context, uid: string, ticket: string): Promise<UpstreamOutcome | undefined>;
}

const STATE_PURPOSE = 'upstream_login';
const OUTCOME_PURPOSE = 'upstream_outcome';
/** How long a user may take at the provider, seconds. */
const TTL = 3600;
/** Seconds. */
const OUTCOME_TTL = 120;

// docs/understand/decisions/connections.md#a-providers-response-is-bound-to-the-browser-that-began-the-login
/**
 * The cookie that binds a login to its browser. SameSite is `None` because providers may answer by a form that their page
 * posts. It is kept for 30 days from its last use, because two tabs that begin a login at the same time in a browser without
 * the cookie get two different ones, of which only the last is kept: the login of the other tab fails.
 */
const BROWSER_COOKIE = browserCookie('__Host-gatehouse_upstream', {
  sameSite: 'none',
  ttlSeconds: 30 * 86_400,
});

interface BrowserBinding {
  /** Hash of the value of the cookie {@link BROWSER_COOKIE}. */
  browser: string;
}

/** Creates the waiting logins of a tenant. */
export function pendingLogins(deps: { challenges: Challenges; clock: Clock; random: Random }): PendingLogins {
  const { challenges, random } = deps;
  const take = async <T>(ctx: Context, purpose: string, ticket: string): Promise<T | undefined> => {
    const stored = (await challenges.peekTicket<T & BrowserBinding>(purpose, ticket))?.data;
    // The browser is checked before the ticket is used up, so that another browser cannot end the login.
    if (stored === undefined || !BROWSER_COOKIE.matchesHash(ctx, stored.browser)) return undefined;
    return (await challenges.spendTicket(purpose, ticket)) === undefined ? undefined : stored;
  };
  return {
    begin: async (ctx, login) => {
      const pending = { ...login, nonce: secret(random), codeVerifier: secret(random) };
      const data = { ...pending, browser: sha256(BROWSER_COOKIE.ensure(ctx, random)) };
      const issued = await challenges.issueTicket({
        purpose: STATE_PURPOSE,
        subject: login.uid,
        ttlSeconds: TTL,
        isWaiting: true,
        data,
      });
      return { ...pending, state: issued.secret };
    },
    take: async (ctx, state) => {
      return take<PendingLogin>(ctx, STATE_PURPOSE, state);
    },
    storeOutcome: async (ctx, uid, outcome) => {
      const data = { ...outcome, uid, browser: sha256(BROWSER_COOKIE.ensure(ctx, random)) };
      const userId = 'login' in outcome ? outcome.login.userId : undefined;
      const newTicket = { purpose: OUTCOME_PURPOSE, subject: uid, ttlSeconds: OUTCOME_TTL, data, userId };
      return (await challenges.issueTicket(newTicket)).secret;
    },
    takeOutcome: async (ctx, uid, ticket) => {
      const verifiedChallenge = await challenges.peekTicket(OUTCOME_PURPOSE, ticket);
      return verifiedChallenge?.data.uid === uid
        ? take<UpstreamOutcome>(ctx, OUTCOME_PURPOSE, ticket)
        : undefined;
    },
  };
}

/** Returns a random value of 256 bits, for a code verifier (RFC 7636 §4.1) or a nonce. */
function secret(random: Random): string {
  return random(32).toString('base64url');
}

/** Path of the redirect URI for all providers. */
export const CALLBACK = '/login/callback';

export interface BeginDependencies extends UpstreamDependencies {
  pendingLogins: PendingLogins;
}

/** A connection whose users log in at an external provider, with its strategy. */
export interface Upstream {
  connection: Connection;
  strategy: RedirectStrategy;
}

/**
 * Begins a login at a provider and binds it to the browser.
 * @returns how the browser is sent to the provider.
 * @throws AuthError when the request to the provider cannot be built.
 */
export async function beginUpstream(
  deps: BeginDependencies,
  ctx: Context,
  { uid, clientId, params }: Pick<WaitingRequest, 'uid' | 'clientId' | 'params'>,
  { connection, strategy }: Upstream,
): Promise<UpstreamRedirect> {
  const { state, nonce, codeVerifier } = await deps.pendingLogins.begin(ctx, {
    uid,
    clientId,
    connectionId: connection.id,
    ...freshness(deps, params),
  });
  return strategy.redirect(deps, {
    connection,
    redirectUri: `${deps.baseUrl}${CALLBACK}`,
    state,
    nonce,
    codeVerifier,
    params,
    additional: upstreamParameters(params),
  });
}

/** Returns the earliest time of authentication at the provider that the request accepts (`prompt=login`, `max_age`). */
function freshness(
  { wallClock }: Pick<BeginDependencies, 'wallClock'>,
  { prompt, max_age }: WaitingRequest['params'],
): { freshSince?: number } {
  const now = epochSeconds(wallClock);
  if (asksForLogin(prompt)) return { freshSince: now };
  const seconds = max_age === undefined ? Number.NaN : Number(max_age);
  return Number.isFinite(seconds) ? { freshSince: now - seconds } : {};
}
