// Restarting a waiting request from a customized login page: the page's SDK gets the request's id as `state`, and sends
// the browser to /authorize with it, for instance with another connection (docs/reference/wire/legacy-pages.md). The id
// is in paths and therefore in logs and referrers, so it gives nothing without the secret that the request has in its
// browser.
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { customLoginPage } from '../../tenant/pages.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import {
  EXTENSIONS_PARAMETER,
  PLACEHOLDER_NONCE,
  readExtensions,
  sentExtensions,
} from '../base/request-extensions.ts';
import type { PushedRequests } from './pushed-requests.ts';
import { browserSecretOf, requestExpired, unbindBrowser } from './waiting-requests.ts';

/** The prefix of such a state; reserved. */
const PREFIX = 'gatehouse.waiting.';
const UID = /^[\w-]{43}$/;

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

export interface RestartDependencies {
  provider: Provider;
  store: Store;
  config: Pick<Config, 'client' | 'settings' | 'resourceServer'>;
  pushedRequests: Pick<PushedRequests, 'rebind'>;
}

interface RestartedRequest {
  /** The request to process, normalized. It contains only what its application has sent. */
  query: ParsedUrlQuery;
  /**
   * Ends the request that waited, so that it is restarted once and the new one takes its place.
   * @throws AuthError 400 when it was restarted or answered meanwhile.
   */
  replace(): Promise<void>;
}

// docs/understand/decisions/authorize.md#a-customized-login-page-restarts-its-request-once-with-what-the-application-sent
/**
 * Returns the waiting request that a new request's state names, with the new request's changes.
 * @param request the new request, normalized.
 * @returns undefined when the state is an application's own.
 * @throws AuthError 400 when the application has no login page of its own, or no such request of it waits in this
 *   browser: no application receives such a state.
 */
export async function restartedRequest(
  deps: RestartDependencies,
  ctx: Context,
  request: ParsedUrlQuery,
): Promise<RestartedRequest | undefined> {
  const uid = uidOfState(request.state);
  if (uid === undefined) return undefined;
  const { provider, config } = deps;
  const waiting = await provider.Interaction.find(uid);
  const params = waiting?.params as Record<string, string> | undefined;
  if (waiting === undefined || params === undefined) throw requestExpired();
  if (browserSecretOf(ctx, waiting) === undefined) throw requestExpired();
  const client = params.client_id === undefined ? undefined : await config.client(params.client_id);
  if (client === undefined || client.client_id !== request.client_id) throw requestExpired();
  if (customLoginPage(config.settings(), client) === undefined) throw requestExpired();
  const extensions = readExtensions(params);
  const mayChange = (name: string) => extensions.isFixed !== true || params[name] === undefined;
  const changes = CHANGEABLE.flatMap((name) =>
    request[name] !== undefined && mayChange(name) ? [[name, request[name]]] : [],
  );
  const { loginTicket, browser } = readExtensions(request);
  return {
    query: {
      ...params,
      ...Object.fromEntries(changes),
      ...(extensions.withoutNonce && { nonce: PLACEHOLDER_NONCE }),
      [EXTENSIONS_PARAMETER]: JSON.stringify({ ...sentExtensions(extensions), loginTicket, browser }),
    },
    replace: async () => {
      const taken = await deps.store.collection('artifacts').take(artifactKey('Interaction', uid));
      if (taken === undefined) throw requestExpired();
      // It is not counted among the waiting ones any more.
      await waiting.destroy();
      unbindBrowser(ctx, uid);
      const { pushed } = extensions;
      if (pushed !== undefined && browser !== undefined)
        await deps.pushedRequests.rebind(pushed, extensions.browser, browser);
    },
  };
}
