// The way out that every logout takes: the session ends, the parties hear of it, the browser goes on.
import type { Context } from 'koa';
import type { Sessions } from '../engine/sessions.ts';
import type { Events } from '../tenant/events.ts';
import { type FederatedDependencies, federatedLogout } from './federated.ts';
import { frontChannelFrames } from './front-channel.ts';

/** What a logout request was found to ask for; all of it checked. */
export interface ValidLogout {
  /** The application that sent the user. */
  clientId: string | undefined;
  /** Where the browser goes in the end; undefined: to our own page. */
  returnTo: string | undefined;
  /** Whether the user logs out of the identity provider that the session came from, too. */
  federated: boolean;
}

export interface EndSessionDependencies extends FederatedDependencies {
  issuer: string;
  sessions: Sessions;
  events: Events;
}

/** How the browser leaves. */
export interface LoggedOut {
  /** Where it goes now; undefined: it is shown {@link SIGNED_OUT} at once. */
  to: string | undefined;
  /** What it loads in frames before: the front channels of the session's applications. */
  frames: string[];
}

/** The page that says that the user is logged out. */
export const SIGNED_OUT = '/logout/done';

/** Ends the browser's session, if it has one. */
export async function endSession(
  deps: EndSessionDependencies,
  ctx: Context,
  { clientId, returnTo, federated }: ValidLogout,
): Promise<LoggedOut> {
  const { sessions, events } = deps;
  const session = await sessions.current(ctx);
  sessions.forget(ctx);
  if (session === undefined) return { to: returnTo, frames: [] };
  const ownPage = `${deps.baseUrl}${SIGNED_OUT}`;
  const last = returnTo ?? ownPage;
  const provider = federated ? await federatedLogout(deps, session, last) : undefined;
  const frames = await frontChannelFrames(deps.config, deps.issuer, session);
  const to = await sessions.end(session.sid, {
    reason: 'rp-logout',
    browser: { returnTo: provider ?? last },
  });
  events.record({
    type: 'slo',
    ...(clientId === undefined ? {} : { client_id: clientId }),
    ...(session.connection === undefined ? {} : { connection: session.connection }),
    user_id: session.userId,
    ip: ctx.ip,
    description: 'User successfully logged out',
  });
  return { to: to === ownPage ? undefined : to, frames };
}
