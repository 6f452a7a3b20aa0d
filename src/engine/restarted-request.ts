// Restarting a waiting request from a customized login page: the page's SDK gets the request's id as `state`, and sends
// the browser to /authorize with it, for instance with another connection (docs/wire/legacy-pages.md).
import type { ParsedUrlQuery } from 'node:querystring';
import type Provider from 'oidc-provider';
import { requestExpired } from './pending-interaction.ts';
import type { PushedRequests } from './pushed-requests.ts';
import { EXTENSIONS_PARAMETER, PLACEHOLDER_NONCE, readExtensions } from './request-extensions.ts';

/** The prefix of such a state; reserved. */
const PREFIX = 'gatehouse.waiting.';
const UID = /^[\w-]{43}$/;

/** Returns the state that names a waiting request. */
export function waitingState(uid: string): string {
  return PREFIX + uid;
}

/** Returns the uid in such a state. @returns undefined for an application's own state. */
export function uidOfState(state: unknown): string | undefined {
  const uid = typeof state === 'string' && state.startsWith(PREFIX) ? state.slice(PREFIX.length) : '';
  return UID.test(uid) ? uid : undefined;
}

/** Parameters that the page may change. */
const CHANGEABLE = ['connection', 'connection_scope', 'login_hint'] as const;

/**
 * Returns the waiting request that a new request's state names, with the new request's changes. It contains only
 * what its application has sent.
 * @param request the new request, normalized.
 * @returns the request to process, normalized; undefined when the state is an application's own.
 * @throws AuthError 400 when no such request of the application waits, so that no application receives such a
 *   state.
 */
export async function restartedRequest(
  { provider, pushedRequests }: { provider: Provider; pushedRequests: Pick<PushedRequests, 'rebind'> },
  request: ParsedUrlQuery,
): Promise<ParsedUrlQuery | undefined> {
  const uid = uidOfState(request.state);
  if (uid === undefined) return undefined;
  const params = (await provider.Interaction.find(uid))?.params as Record<string, string> | undefined;
  if (params === undefined || params.client_id !== request.client_id) throw requestExpired();
  const extensions = readExtensions(params);
  const mayChange = (name: string) => extensions.isFixed !== true || params[name] === undefined;
  const changes = CHANGEABLE.flatMap((name) =>
    request[name] !== undefined && mayChange(name) ? [[name, request[name]]] : [],
  );
  const { loginTicket, browser } = readExtensions(request);
  const { pushed } = extensions;
  if (pushed !== undefined && browser !== undefined)
    await pushedRequests.rebind(pushed, extensions.browser, browser);
  return {
    ...params,
    ...Object.fromEntries(changes),
    ...(extensions.withoutNonce && { nonce: PLACEHOLDER_NONCE }),
    [EXTENSIONS_PARAMETER]: JSON.stringify({ ...extensions, loginTicket, browser }),
  };
}
