// Logins by which administrators try an application. They end at a callback of the console, so that the application's
// own callbacks need not change. Only logins begun here can end there.
// docs/understand/decisions/console-account.md#a-test-login-for-an-application-uses-a-callback-of-our-own

import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { requestExpired } from '../../../engine/authorize/waiting-requests.ts';
import type { ServerLoginCallback } from '../../../engine/client/server-login-callbacks.ts';
import { addressesBelow } from '../../../engine/client/server-login-callbacks.ts';
import { AuthError } from '../../../http/errors.ts';
import { CONSOLE_CLIENT } from '../../../records/users/administrators.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { sha256 } from '../../../runtime/secrets.ts';

/** Path below which each application has its callback. */
export const TRY_CALLBACK = '/console-try';

const PURPOSE = 'console_try';
/** How long a login may take, seconds. */
const LOGIN_SECONDS = 900;

/**
 * Returns the callbacks of all applications that use the authorization code grant.
 * @param consoleUrl the public URL of the console.
 */
export function tryCallbacks(consoleUrl: string): ServerLoginCallback {
  return {
    isFor: ({ client_id, grant_types = [] }) =>
      client_id !== CONSOLE_CLIENT && grant_types.includes('authorization_code'),
    of: (clientId) => `${consoleUrl}${TRY_CALLBACK}/${encodeURIComponent(clientId)}`,
    has: addressesBelow(consoleUrl, TRY_CALLBACK),
    // The login should be as its users see it: a third-party application asks for consent.
    needsConsent: true,
    protocol: 'oidc-basic-profile',
    act: undefined,
  };
}

interface StoredLogin {
  clientId: string;
  verifier: string;
  challenge: string;
  /** A hash that stands for the administrator's session. */
  session: string;
}

/** An authorization code, and the proof that it was requested here. */
interface ReceivedCode {
  code: string;
  redirectUri: string;
  verifier: string;
}

export interface TryLogins {
  /** @returns the address to send the browser to. */
  start(session: string, request: { clientId: string; params: Record<string, string> }): Promise<string>;
  /**
   * Reads the authorization response at the callback; each login can end only once.
   * @returns the code, or the error of the response.
   * @throws AuthError 400 when this session has not begun the login.
   */
  finish(
    session: string,
    clientId: string,
    query: Query,
  ): Promise<ReceivedCode | { error: string; description: string }>;
  /** @throws AuthError 400 when it uses one of these callbacks without a login begun here. */
  check(query: Query): Promise<void>;
}

type Query = Readonly<Record<string, string | string[] | undefined>>;

export function tryLogins({
  callbacks,
  challenges,
  random,
}: {
  callbacks: Pick<ServerLoginCallback, 'of' | 'has'>;
  challenges: Pick<Challenges, 'issueTicket' | 'peekTicket' | 'spendTicket'>;
  random: Random;
}): TryLogins {
  const readLogin = async (state: Query[string]): Promise<StoredLogin | undefined> => {
    const verifiedChallenge =
      typeof state === 'string' ? await challenges.peekTicket(PURPOSE, state) : undefined;
    return verifiedChallenge?.data as StoredLogin | undefined;
  };
  return {
    start: async (session, { clientId, params }) => {
      const verifier = random(32).toString('base64url');
      const challenge = sha256(verifier);
      const login: StoredLogin = { clientId, verifier, challenge, session };
      // One login per session: a new one replaces one that was given up.
      const ticket = { purpose: PURPOSE, subject: session, ttlSeconds: LOGIN_SECONDS, data: { ...login } };
      const { secret: state } = await challenges.issueTicket(ticket);
      return `/authorize?${new URLSearchParams({
        ...params,
        client_id: clientId,
        redirect_uri: callbacks.of(clientId),
        response_type: 'code',
        scope: 'openid profile email',
        state,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      })}`;
    },
    finish: async (session, clientId, { state, code, error, error_description: description }) => {
      const login = await readLogin(state);
      // Checked before it is spent, so that another session cannot end a login that it has not begun.
      if (typeof state !== 'string' || login?.clientId !== clientId || login.session !== session)
        throw requestExpired();
      if ((await challenges.spendTicket(PURPOSE, state)) === undefined) throw requestExpired();
      if (typeof error === 'string')
        return { error, description: typeof description === 'string' ? description : '' };
      if (typeof code !== 'string') throw requestExpired();
      return { code, redirectUri: callbacks.of(clientId), verifier: login.verifier };
    },
    check: async ({ redirect_uri, client_id, state, code_challenge, response_mode }) => {
      if (![redirect_uri ?? []].flat().some((uri) => callbacks.has(uri))) return;
      const login = await readLogin(state);
      const isOurs = login?.clientId === client_id && login?.challenge === code_challenge;
      if (login !== undefined && isOurs && response_mode === undefined) return;
      throw new AuthError(400, 'invalid_request', 'This redirect_uri is not for applications to use.');
    },
  };
}
