// Internal authorization requests: another protocol (SAML) logs its users in through /authorize, with the same pages,
// single sign-on, second factor and admission, and redeems the code itself.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors } from 'oidc-provider';
import { browserCookie } from '../http/browser-cookie.ts';
import { AuthError } from '../http/errors.ts';
import type { Challenges } from '../protection/challenges.ts';
import { createWaitingList, type WaitingList } from '../protection/waiting.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Users } from '../users/users.ts';
import { admit } from './admission.ts';
import { internalCallback, isInternalCallback } from './applications.ts';
import { requestExpired } from './interaction.ts';

/** A login for another protocol. */
export interface NewInternalRequest {
  clientId: string;
  /** Parameters of the authorization request: `prompt`, `max_age`, `acr_values`, `login_hint` … */
  params: Readonly<Record<string, string | undefined>>;
  /** JSON returned with the outcome; at most {@link LARGEST_DATA} characters. */
  data: Record<string, unknown>;
}

/** Who logged in, and how. */
export interface InternalLogin {
  userId: string;
  /** The session id (`sid`), shared by all applications of the session. */
  sessionUid: string;
  /** Epoch seconds. */
  authTime: number;
  /** Authentication methods (RFC 8176). */
  amr: readonly string[];
  /** Authentication context class. */
  acr: string | undefined;
}

export interface InternalOutcome {
  clientId: string;
  data: Readonly<Record<string, unknown>>;
  /** The user, or the error that the authorization ended with. */
  login: InternalLogin | { error: string; description: string };
}

export interface InternalRequests {
  /** Stores a request for this browser. @returns the address that starts its login. */
  begin(ctx: Context, request: NewInternalRequest): Promise<string>;
  /**
   * Ends a login at the internal callback, once.
   * @throws AuthError 400 when no such request waits in this browser, or the code is another's.
   */
  finish(ctx: Context, clientId: string): Promise<InternalOutcome>;
  /**
   * Checks an authorization request.
   * @throws AuthError 400 for an internal callback without an internal request.
   */
  check(query: Readonly<Record<string, string | string[] | undefined>>): Promise<void>;
}

export interface InternalRequestDependencies {
  provider: Provider;
  baseUrl: string;
  challenges: Challenges;
  users: Users;
  random: Random;
  clock: Clock;
}

const PURPOSE = 'internal_login';
/** How long a login may take, seconds. */
const TTL = 3600;
/** Limits on waiting requests, because anybody can start one. */
const WAITING = { most: 10_000, mostOfAddress: 600, ttlSeconds: TTL };
/** Characters of a request's data. */
const LARGEST_DATA = 8_192;

/** Ties requests to the browser that made them. */
// `None`: what comes back by another site's post must bring it. What is not to be forged is a state or a request's ID,
// which goes with it.
const BROWSER = browserCookie('__Host-gatehouse_request', { sameSite: 'none' });

/** A stored request. */
interface Kept {
  clientId: string;
  codeChallenge: string;
  /** The hash of {@link BROWSER}'s secret. */
  browser: string;
  /** Its id in the waiting list. */
  request: string;
  data: Record<string, unknown>;
}

/** The internal requests of one provider. */
export function internalRequests(deps: InternalRequestDependencies): InternalRequests {
  const { baseUrl, challenges, random } = deps;
  const waiting = createWaitingList(WAITING, deps.clock);
  return {
    begin: async (ctx, { clientId, params, data }) => {
      if (JSON.stringify(data).length > LARGEST_DATA) {
        throw new AuthError(400, 'invalid_request', 'The request is too long.');
      }
      // A challenge without a known verifier: the token endpoint refuses this code, even if it is stolen (RFC 7636
      // §4.6). It is redeemed here by comparing the challenge itself.
      const codeChallenge = random(32).toString('base64url');
      const request = random(16).toString('base64url');
      const browser = sha256(BROWSER.keep(ctx, random));
      const kept: Kept = { clientId, codeChallenge, browser, request, data };
      await Promise.all(waiting.add(request, ctx.ip).map((gone) => challenges.discard(PURPOSE, gone)));
      const { secret: state } = await challenges.issueTicket({
        purpose: PURPOSE,
        subject: request,
        ttlSeconds: TTL,
        data: { ...kept },
      });
      const query = new URLSearchParams({
        client_id: clientId,
        redirect_uri: internalCallback(baseUrl, clientId),
        response_type: 'code',
        scope: 'openid',
        state,
        code_challenge: codeChallenge,
        code_challenge_method: 'S256',
      });
      for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, value);
      return `/authorize?${query}`;
    },
    finish: (ctx, clientId) => finish(deps, waiting, ctx, clientId),
    check: async ({ redirect_uri, state, code_challenge, response_mode }) => {
      const uris = [redirect_uri ?? []].flat();
      if (!uris.some((uri) => isInternalCallback(baseUrl, uri))) return;
      const met = typeof state === 'string' ? await challenges.peekTicket(PURPOSE, state) : undefined;
      const kept = met?.data as unknown as Kept | undefined;
      if (kept !== undefined && kept.codeChallenge === code_challenge && response_mode === undefined) return;
      throw new AuthError(400, 'invalid_request', 'This redirect_uri is not for applications to use.');
    },
  };
}

async function finish(
  deps: InternalRequestDependencies,
  waiting: WaitingList,
  ctx: Context,
  clientId: string,
): Promise<InternalOutcome> {
  const { state, code, error, error_description } = ctx.query;
  const peeked = typeof state === 'string' ? await deps.challenges.peekTicket(PURPOSE, state) : undefined;
  const kept = peeked?.data as unknown as Kept | undefined;
  // Looked at before it is used up: another browser cannot end a login that is not its own.
  if (typeof state !== 'string' || kept?.clientId !== clientId || !BROWSER.bringsHashed(ctx, kept.browser)) {
    throw requestExpired();
  }
  if ((await deps.challenges.spendTicket(PURPOSE, state)) === undefined) throw requestExpired();
  waiting.done(kept.request);
  await deps.challenges.discard(PURPOSE, kept.request);
  const { data } = kept;
  if (typeof error === 'string') {
    const description = typeof error_description === 'string' ? error_description : '';
    return { clientId, data, login: { error, description } };
  }
  return { clientId, data, login: await redeem(deps, kept, typeof code === 'string' ? code : '') };
}

/** Redeems a code with the token endpoint's checks (RFC 6749 §4.1.3). */
async function redeem(
  { provider, baseUrl, users }: InternalRequestDependencies,
  { clientId, codeChallenge }: Kept,
  value: string,
): Promise<InternalOutcome['login']> {
  const code = value === '' ? undefined : await provider.AuthorizationCode.find(value);
  const { accountId, sessionUid, authTime } = code ?? {};
  if (
    code === undefined ||
    code.isExpired ||
    code.clientId !== clientId ||
    code.redirectUri !== internalCallback(baseUrl, clientId) ||
    code.codeChallenge !== codeChallenge ||
    accountId === undefined ||
    sessionUid === undefined ||
    authTime === undefined
  ) {
    throw requestExpired();
  }
  await code.consume().catch((thrown: unknown) => {
    throw thrown instanceof errors.InvalidGrant ? requestExpired(thrown) : thrown;
  });
  // No tokens are issued, so code and grant can go.
  await Promise.all([
    code.destroy(),
    code.grantId === undefined ? undefined : provider.Grant.adapter.destroy(code.grantId),
  ]);
  // The session may have ended meanwhile.
  if ((await provider.Session.findByUid(sessionUid)) === undefined) throw requestExpired();
  const user = await users.get(accountId);
  const refusal = user === undefined ? requestExpired() : admit(user);
  if (refusal !== undefined) return { error: refusal.error, description: refusal.error_description };
  return { userId: accountId, sessionUid, authTime, amr: code.amr ?? [], acr: code.acr };
}
