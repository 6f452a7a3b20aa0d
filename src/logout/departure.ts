// The way out that every logout takes: the session ends, the parties hear of it, the browser goes on.
import type { Context } from 'koa';
import type { Sessions } from '../engine/sessions.ts';
import type { Events } from '../tenant/events.ts';

/** What a logout request was found to ask for; all of it checked. */
export interface Destination {
  /** The application that sent the user. */
  clientId: string | undefined;
  /** Where the browser goes in the end; undefined: to our own page. */
  returnTo: string | undefined;
  /** Whether the user logs out of the identity provider that the session came from, too. */
  federated: boolean;
}

export interface DepartureDependencies {
  /** Our public origin. */
  baseUrl: string;
  sessions: Sessions;
  events: Events;
}

/** The page that says that the user is logged out. */
export const SIGNED_OUT = '/logout/done';

/**
 * Ends the browser's session, if it has one.
 * @returns where the browser goes now; undefined: it is shown {@link SIGNED_OUT} at once.
 */
export async function depart(
  { baseUrl, sessions, events }: DepartureDependencies,
  ctx: Context,
  { clientId, returnTo }: Destination,
): Promise<string | undefined> {
  const session = await sessions.current(ctx);
  sessions.forget(ctx);
  if (session === undefined) return returnTo;
  const ownPage = `${baseUrl}${SIGNED_OUT}`;
  const to = await sessions.end(session.sid, {
    reason: 'rp-logout',
    browser: { returnTo: returnTo ?? ownPage },
  });
  events.record({
    type: 'slo',
    ...(clientId === undefined ? {} : { client_id: clientId }),
    ...(session.connection === undefined ? {} : { connection: session.connection }),
    user_id: session.userId,
    ip: ctx.ip,
    description: 'User successfully logged out',
  });
  return to === ownPage ? undefined : to;
}
