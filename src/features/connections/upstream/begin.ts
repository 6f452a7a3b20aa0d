// Begins a login at an upstream provider for a waiting authorization request.
import type { Context } from 'koa';
import type { WaitingRequest } from '../../../engine/authorize/waiting-requests.ts';
import { upstreamParameters } from '../../../engine/base/request-extensions.ts';
import type { Connection } from '../../../records/collections.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import {
  asksForLogin,
  type RedirectStrategy,
  type UpstreamDependencies,
  type UpstreamRedirect,
} from '../redirect.ts';
import type { PendingLogins } from './pending.ts';

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
