// Logins for something other than an application's authorization request, such as SAML or a device code. The user
// goes through /authorize all the same, so that pages, single sign-on, second factors and admission are the same,
// and the authorization code is redeemed here.
import type { Context } from 'koa';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import { admissionError } from '../../engine/admission/admission.ts';
import { requestExpired } from '../../engine/authorize/waiting-requests.ts';
import type { ServerLoginCallback } from '../../engine/client/server-login-callbacks.ts';
import type { CodeLogin, RedeemServerLoginCode } from '../../engine/token/server-login-codes.ts';
import { AuthError } from '../../http/errors.ts';
import { browserCookie } from '../../http/server/browser-cookie.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { isUnattended } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';

interface NewServerLogin {
  clientId: string;
  /** Parameters of the authorization request: `prompt`, `max_age`, `acr_values`, `login_hint` … */
  params: Readonly<Record<string, string | undefined>>;
  /** JSON returned with the outcome; at most {@link MAX_DATA_LENGTH} characters. */
  data: Record<string, unknown>;
}

export interface ServerLoginOutcome {
  clientId: string;
  data: Readonly<Record<string, unknown>>;
  /** The user, or the error that the authorization ended with. */
  login: CodeLogin | { error: string; description: string };
}

export interface ServerLogins {
  /** Stores a request for this browser. @returns the path that starts its login. */
  start(ctx: Context, request: NewServerLogin): Promise<string>;
  /**
   * Ends a login, at the callback of its application; each request ends once.
   * @throws AuthError 400 when no such request waits in this browser, or the code does not belong to it.
   */
  finish(ctx: Context, clientId: string): Promise<ServerLoginOutcome>;
  /** @throws AuthError 400 for a callback of ours without a login that began here. */
  check(query: Readonly<Record<string, string | string[] | undefined>>): Promise<void>;
}

export interface ServerLoginDependencies {
  /** The purpose of the logins. One that was begun for another purpose is refused. */
  purpose: string;
  callbacks: Pick<ServerLoginCallback, 'of' | 'has' | 'act'>;
  redeemServerLoginCode: RedeemServerLoginCode;
  challenges: Challenges;
  users: Users;
  random: Random;
  clock: Clock;
}

/** How long a login may take, seconds. */
const TTL = 3600;
/** The most characters of a request's data. */
const MAX_DATA_LENGTH = 8_192;

// Binds requests to the browser that made them. `None`, because a response may come by a POST from another site.
// The cookie alone proves nothing: a response also needs the state or the ID of the request.
const BROWSER = browserCookie('__Host-gatehouse_request', { sameSite: 'none' });

interface StoredRequest {
  clientId: string;
  codeChallenge: string;
  /** The hash of {@link BROWSER}'s secret. */
  browser: string;
  /** The subject of its challenge. */
  request: string;
  data: Record<string, unknown>;
}

export function createServerLogins(deps: ServerLoginDependencies): ServerLogins {
  const { purpose, callbacks, challenges, random } = deps;
  return {
    start: async (ctx, { clientId, params, data }) => {
      if (JSON.stringify(data).length > MAX_DATA_LENGTH) {
        throw new AuthError(400, 'invalid_request', 'The request is too long.');
      }
      // A challenge without a known verifier: the token endpoint refuses this code, even if it is stolen (RFC 7636
      // §4.6). It is redeemed here by comparing the challenge itself.
      const codeChallenge = random(32).toString('base64url');
      const request = random(16).toString('base64url');
      const browser = sha256(BROWSER.ensure(ctx, random));
      const stored: StoredRequest = { clientId, codeChallenge, browser, request, data };
      const { secret: state } = await challenges.issueTicket({
        purpose,
        subject: request,
        ttlSeconds: TTL,
        isWaiting: true,
        data: { ...stored },
      });
      const query = new URLSearchParams({
        client_id: clientId,
        redirect_uri: callbacks.of(clientId),
        response_type: 'code',
        scope: 'openid',
        state,
        code_challenge: codeChallenge,
        code_challenge_method: 'S256',
      });
      for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, value);
      return `/authorize?${query}`;
    },
    finish: (ctx, clientId) => finish(deps, ctx, clientId),
    check: async ({ redirect_uri, state, code_challenge, response_mode }) => {
      const uris = [redirect_uri ?? []].flat();
      if (!uris.some((uri) => callbacks.has(uri))) return;
      const challenge =
        typeof state === 'string' ? await challenges.peekTicket<StoredRequest>(purpose, state) : undefined;
      const stored = challenge?.data;
      if (stored !== undefined && stored.codeChallenge === code_challenge && response_mode === undefined)
        return;
      throw new AuthError(400, 'invalid_request', 'This redirect_uri is not for applications to use.');
    },
  };
}

async function finish(
  deps: ServerLoginDependencies,
  ctx: Context,
  clientId: string,
): Promise<ServerLoginOutcome> {
  const { state, code, error, error_description } = ctx.query;
  const challenge =
    typeof state === 'string'
      ? await deps.challenges.peekTicket<StoredRequest>(deps.purpose, state)
      : undefined;
  const stored = challenge?.data;
  // Checked before it is used up, so that another browser cannot end a login that is not its own.
  if (
    typeof state !== 'string' ||
    stored?.clientId !== clientId ||
    !BROWSER.matchesHash(ctx, stored.browser)
  ) {
    throw requestExpired();
  }
  if ((await deps.challenges.spendTicket(deps.purpose, state)) === undefined) throw requestExpired();
  await deps.challenges.discard(deps.purpose, stored.request);
  const { data } = stored;
  if (typeof error === 'string') {
    const description = typeof error_description === 'string' ? error_description : '';
    return { clientId, data, login: { error, description } };
  }
  return { clientId, data, login: await redeemCode(deps, stored, typeof code === 'string' ? code : '') };
}

async function redeemCode(
  { callbacks, redeemServerLoginCode, users }: ServerLoginDependencies,
  { clientId, codeChallenge }: StoredRequest,
  value: string,
): Promise<ServerLoginOutcome['login']> {
  const redirectUri = callbacks.of(clientId);
  const login = await redeemServerLoginCode(value, { clientId, redirectUri, codeChallenge });
  const user = login === undefined ? undefined : await users.get(login.userId);
  if (login === undefined || user === undefined) throw requestExpired();
  const refusal = admissionError(user);
  if (refusal !== undefined) return { error: refusal.error, description: refusal.error_description };
  // The policy asks for a login before it comes to this.
  if (callbacks.act !== undefined && isUnattended(login))
    return { error: 'login_required', description: 'A login by the user is required.' };
  return login;
}
