// The way to an upstream provider, for a request that waits.
import type { Context } from 'koa';
import type { WaitingRequest } from '../../engine/pending-interaction.ts';
import { upstreamAdditional } from '../../engine/request-extensions.ts';
import type { Connection } from '../../records/collections.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import {
  asksForLogin,
  type RedirectStrategy,
  type UpstreamDependencies,
  type UpstreamRedirect,
} from '../redirect.ts';
import type { PendingLogins } from './pending.ts';

/** Where providers send the browser back to. */
export const CALLBACK = '/login/callback';

export interface BeginDependencies extends UpstreamDependencies {
  pendingLogins: PendingLogins;
}

/** A connection whose users log in elsewhere. */
export interface Upstream {
  connection: Connection;
  strategy: RedirectStrategy;
}

/**
 * Begins a login at a provider.
 * @returns where the browser goes. @throws AuthError when the provider cannot be asked.
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
    additional: upstreamAdditional(params),
  });
}

/** Since when a login there is new enough for the request. */
function freshness(
  { wallClock }: Pick<BeginDependencies, 'wallClock'>,
  { prompt, max_age }: WaitingRequest['params'],
): { freshSince?: number } {
  const now = epochSeconds(wallClock);
  if (asksForLogin(prompt)) return { freshSince: now };
  const seconds = max_age === undefined ? Number.NaN : Number(max_age);
  return Number.isFinite(seconds) ? { freshSince: now - seconds } : {};
}
