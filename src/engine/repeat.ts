// A request that waits for its user, as a customized login page calls it: the page's SDK takes the name for the
// `state` of its own requests, and sends the browser to /authorize with it, for another connection, say.
import type { ParsedUrlQuery } from 'node:querystring';
import type Provider from 'oidc-provider';
import { EXTENSIONS_PARAMETER, PLACEHOLDER_NONCE, readExtensions } from './authorization-parameters.ts';
import { requestExpired } from './interaction.ts';

/** No application's own state begins so. */
const PREFIX = 'gatehouse.waiting.';
const UID = /^[\w-]{43}$/;

/** The name of a waiting request. */
export function waitingState(uid: string): string {
  return PREFIX + uid;
}

/** The uid of the request that a state names. @returns undefined for a state of an application's own. */
export function uidOfState(state: unknown): string | undefined {
  const uid = typeof state === 'string' && state.startsWith(PREFIX) ? state.slice(PREFIX.length) : '';
  return UID.test(uid) ? uid : undefined;
}

/** What the page may change of its request. */
const CHANGEABLE = ['connection', 'connection_scope', 'login_hint'] as const;

/**
 * The request that the state of another names, with what the other changes of it. It is no more than its application
 * sent: whoever knows its name could send it again.
 * @param request the other, as the engine takes it.
 * @returns as the engine takes it; undefined when the state is an application's own.
 * @throws AuthError 400 when no such request of the application waits: no application gets a state that it did not send.
 */
export async function repeatedRequest(
  provider: Provider,
  request: ParsedUrlQuery,
): Promise<ParsedUrlQuery | undefined> {
  const uid = uidOfState(request.state);
  if (uid === undefined) return undefined;
  const params = (await provider.Interaction.find(uid))?.params as Record<string, string> | undefined;
  if (params === undefined || params.client_id !== request.client_id) throw requestExpired();
  const changes = CHANGEABLE.flatMap((name) => (request[name] === undefined ? [] : [[name, request[name]]]));
  const extensions = readExtensions(params);
  const { loginTicket, browser } = readExtensions(request);
  return {
    ...params,
    ...Object.fromEntries(changes),
    ...(extensions.withoutNonce && { nonce: PLACEHOLDER_NONCE }),
    [EXTENSIONS_PARAMETER]: JSON.stringify({ ...extensions, loginTicket, browser }),
  };
}
