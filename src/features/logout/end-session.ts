// The end of every logout: ends the session, notifies its applications, and returns where the browser goes.
import type { Context } from 'koa';
import { engineEvents } from '../../engine/base/engine-declaration.ts';
import type { Sessions, UserSession } from '../../engine/session/sessions.ts';
import { withParameters } from '../../http/server/body.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { type FederatedDependencies, federatedLogout } from './federated.ts';

/** A logout request after validation. */
export interface ValidLogout {
  clientId: string | undefined;
  /** The URL where the browser goes in the end; undefined for our signed-out page. */
  returnTo: string | undefined;
  /** Whether to log out of the upstream identity provider, too. */
  federated: boolean;
}

export interface EndSessionDependencies extends FederatedDependencies {
  config: Config;
  issuer: string;
  sessions: Sessions;
  events: Events;
  // docs/understand/decisions/moving.md#a-logout-here-is-a-logout-at-the-old-tenant
  /** For a move from another tenant, whose session must not log the user in again. */
  oldSessions: {
    /**
     * Keeps the browser from being logged in by a session of that tenant.
     * @param session that of the browser here, if it has one.
     * @returns whether the browser has to go on by that tenant's logout, which ends its session there.
     */
    leave(ctx: Context, session: UserSession | undefined): Promise<boolean>;
  };
}

export interface LogoutOutcome {
  /** The URL where the browser goes now; undefined when the signed-out page is shown at once. */
  to: string | undefined;
  /** Front-channel logout URLs to load in frames first. */
  frames: string[];
}

export const SIGNED_OUT_PATH = '/logout/done';

/** Ends the browser's session, if it has one. */
export async function endSession(
  deps: EndSessionDependencies,
  ctx: Context,
  { clientId, returnTo, federated }: ValidLogout,
): Promise<LogoutOutcome> {
  const { sessions, events } = deps;
  const session = await sessions.current(ctx);
  sessions.forget(ctx);
  const leavesOldTenant = await deps.oldSessions.leave(ctx, session);
  const ownPage = `${deps.baseUrl}${SIGNED_OUT_PATH}`;
  const last = returnTo ?? ownPage;
  const endsElsewhere = leavesOldTenant || (federated && session !== undefined);
  const provider = endsElsewhere ? await federatedLogout(deps, session, last) : undefined;
  if (session === undefined) return { to: provider ?? returnTo, frames: [] };
  const frames = await frontChannelFrames(deps.config, deps.issuer, session);
  const to = await sessions.end(session.sid, {
    reason: 'rp-logout',
    browser: { returnTo: provider ?? last },
  });
  events.record({
    type: engineEvents.slo,
    ...(clientId === undefined ? {} : { client_id: clientId }),
    ...(session.connection === undefined ? {} : { connection: session.connection }),
    user_id: session.userId,
    ip: ctx.ip,
    description: 'User successfully logged out',
  });
  return { to: to === ownPage ? undefined : to, frames };
}

// Front-channel logout (OpenID Connect Front-Channel Logout 1.0 §3): URLs of applications that the signed-out page
// loads in frames, so that they end their own sessions in this browser.
// docs/understand/decisions/sessions-logout.md#front-channel-logout-waits-for-its-frames-for-five-seconds-at-most

/** Returns the front-channel logout URLs of a session's applications, with `iss` and `sid`. */
async function frontChannelFrames(
  config: Config,
  issuer: string,
  { clientIds, sid }: Pick<UserSession, 'clientIds' | 'sid'>,
): Promise<string[]> {
  const clients = await Promise.all(clientIds.map((clientId) => config.client(clientId)));
  return clients.flatMap((client) => {
    if (client?.frontchannel_logout_uri === undefined) return [];
    return [withParameters(client.frontchannel_logout_uri, { iss: issuer, sid })];
  });
}
