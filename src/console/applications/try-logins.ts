// Logins by which administrators try an application. They end at an address of ours: the application's own callbacks stay as
// they are, and nobody else can have a login end there.

import type { OwnCallback } from '../../engine/own-callbacks.ts';
import { addressesBelow } from '../../engine/own-callbacks.ts';
import { requestExpired } from '../../engine/pending-interaction.ts';
import { AuthError } from '../../http/errors.ts';
import type { Challenges } from '../../protection/challenges.ts';
import { CONSOLE_CLIENT } from '../../records/administrators.ts';
import type { Random } from '../../runtime/random.ts';
import { sha256 } from '../../runtime/secrets.ts';

/** Below it is the callback of each application. */
export const TRIED = '/console-try';

const PURPOSE = 'console_try';
/** How long a login may take, seconds. */
const TTL = 900;

/** The callbacks of all applications that take codes. @param consoleUrl the console's public origin. */
export function tryCallbacks(consoleUrl: string): OwnCallback {
  return {
    isFor: ({ client_id, grant_types = [] }) =>
      client_id !== CONSOLE_CLIENT && grant_types.includes('authorization_code'),
    of: (clientId) => `${consoleUrl}${TRIED}/${encodeURIComponent(clientId)}`,
    has: addressesBelow(consoleUrl, TRIED),
    // It is tried as its users log in: one of a third party asks for consent.
    needsConsent: true,
    protocol: 'oidc-basic-profile',
  };
}

/** A login that was begun. */
interface Kept {
  clientId: string;
  verifier: string;
  challenge: string;
  /** Stands for the session of the administrator, which is in one browser alone. */
  session: string;
}

/** A code that came back, and what proves that it was asked for here. */
interface TriedCode {
  code: string;
  redirectUri: string;
  verifier: string;
}

export interface TryLogins {
  /** @returns the address that begins the login. */
  begin(session: string, request: { clientId: string; params: Record<string, string> }): Promise<string>;
  /**
   * Takes in what came to the callback; each login ends once.
   * @returns the code, or the error that the authorization ended with.
   * @throws AuthError 400 where this session has begun no such login.
   */
  finish(
    session: string,
    clientId: string,
    query: Query,
  ): Promise<TriedCode | { error: string; description: string }>;
  /** Checks an authorization request. @throws AuthError 400 for a callback of these without a login that began here. */
  check(query: Query): Promise<void>;
}

type Query = Readonly<Record<string, string | string[] | undefined>>;

/** The logins of a tenant. */
export function tryLogins({
  callbacks,
  challenges,
  random,
}: {
  callbacks: Pick<OwnCallback, 'of' | 'has'>;
  challenges: Pick<Challenges, 'issueTicket' | 'peekTicket' | 'spendTicket'>;
  random: Random;
}): TryLogins {
  const keptOf = async (state: Query[string]): Promise<Kept | undefined> => {
    const met = typeof state === 'string' ? await challenges.peekTicket(PURPOSE, state) : undefined;
    return met?.data as Kept | undefined;
  };
  return {
    begin: async (session, { clientId, params }) => {
      const verifier = random(32).toString('base64url');
      const challenge = sha256(verifier);
      const kept: Kept = { clientId, verifier, challenge, session };
      // One at a time: the next takes the place of one that was given up.
      const ticket = { purpose: PURPOSE, subject: session, ttlSeconds: TTL, data: { ...kept } };
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
      const kept = await keptOf(state);
      // Looked at before it is used up: another session cannot end a login that is not its own.
      if (typeof state !== 'string' || kept?.clientId !== clientId || kept.session !== session)
        throw requestExpired();
      if ((await challenges.spendTicket(PURPOSE, state)) === undefined) throw requestExpired();
      if (typeof error === 'string')
        return { error, description: typeof description === 'string' ? description : '' };
      if (typeof code !== 'string') throw requestExpired();
      return { code, redirectUri: callbacks.of(clientId), verifier: kept.verifier };
    },
    check: async ({ redirect_uri, client_id, state, code_challenge, response_mode }) => {
      if (![redirect_uri ?? []].flat().some((uri) => callbacks.has(uri))) return;
      const kept = await keptOf(state);
      const isOurs = kept?.clientId === client_id && kept?.challenge === code_challenge;
      if (kept !== undefined && isOurs && response_mode === undefined) return;
      throw new AuthError(400, 'invalid_request', 'This redirect_uri is not for applications to use.');
    },
  };
}
