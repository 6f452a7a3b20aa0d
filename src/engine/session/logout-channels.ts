// Tells the applications of a session that it has ended, through back channels and the single logout of other
// protocols. Each feature adds its channel at the server's start and knows no other.
import type { Logger } from 'pino';
import type { Write } from '../../store/contract.ts';

/** A session that has ended; its record and its tokens are gone already. */
export interface EndedSession {
  /** The session id, as in the `sid` of its ID tokens: the same for all applications. */
  sid: string;
  /** The user's `sub`. */
  userId: string;
  /** The client_ids of the applications that took part, by any protocol. */
  clientIds: readonly string[];
  reason: SessionEndReason;
  /** The client_id of the application whose own request ended the session; this one is not notified. */
  startedBy?: string | undefined;
}

/**
 * Why a session ended, named as in the hosted service's `backchannel_logout_initiators`. `rp-logout`: the user
 * logged out at `/v2/logout` or `/oidc/logout`, or by a logout request of another protocol. `idp-logout`: the user logged out at the identity provider.
 * `account-deactivated`: the user was blocked. `session-revoked`: another user logged in at this browser, or an
 * administrator ended the session.
 */
export type SessionEndReason =
  | 'rp-logout'
  | 'idp-logout'
  | 'password-changed'
  | 'account-deactivated'
  | 'account-deleted'
  | 'session-revoked';

/** The user's browser, when the session ends by a request of it. */
export interface LogoutBrowser {
  /** The URL where the browser goes in the end: absolute and already checked, never built from a request. */
  returnTo: string;
}

/** The writes for the commit that ends a session, and what is done after it. */
interface PreparedNotification {
  writes: readonly Write[];
  start(): void;
}

/** One protocol by which applications are notified. */
export interface LogoutChannel {
  /** For the log. */
  name: string;
  /**
   * Called before a session is ended, for a channel that needs no browser. The returned writes are stored in the
   * same commit as the end, so that no notification is lost. An error is logged, and the session ends nevertheless.
   */
  prepare?(session: EndedSession): Promise<PreparedNotification>;
  /**
   * Notifies the applications of an ended session; slow work continues in the background. Called once a session, in
   * the order of the list. An error is logged and stops neither the logout nor the other channels.
   * @param browser given only when the user's own browser is there. A channel through the browser (single logout)
   *   returns the URL to send it to first, and sends it on to `returnTo` whether or not applications answer.
   * @returns that URL, absolute; undefined when the channel does not need the browser.
   */
  notify?(session: EndedSession, browser?: LogoutBrowser): Promise<string | undefined>;
}

/** The channels of a tenant. */
export interface LogoutChannels {
  /** Returns the writes for the commit that ends a session. The caller calls `begin` after the commit. */
  prepare(session: EndedSession): Promise<PreparedNotification>;
  /**
   * Notifies all applications.
   * @returns where the browser goes now: `browser.returnTo`, or a URL that leads there through the applications.
   */
  notify(session: EndedSession, browser?: LogoutBrowser): Promise<string | undefined>;
}

/** Combines a tenant's channels, in the order in which they are called. */
export function createLogoutChannels(channels: readonly LogoutChannel[], log: Logger): LogoutChannels {
  return {
    prepare: async (session) => {
      const prepared: PreparedNotification[] = [];
      for (const { name, prepare } of channels) {
        try {
          if (prepare !== undefined) prepared.push(await prepare(session));
        } catch (error) {
          log.error({ err: error, channel: name }, 'the participants could not be told of a logout');
        }
      }
      return {
        writes: prepared.flatMap(({ writes }) => writes),
        start: () => {
          for (const one of prepared) one.start();
        },
      };
    },
    notify: async (session, browser) => {
      let returnTo = browser?.returnTo;
      for (const channel of channels) {
        try {
          const channelUrl = await channel.notify?.(
            session,
            returnTo === undefined ? undefined : { returnTo },
          );
          if (browser !== undefined) returnTo = channelUrl ?? returnTo;
        } catch (error) {
          log.error({ err: error, channel: channel.name }, 'the participants could not be told of a logout');
        }
      }
      return returnTo;
    },
  };
}
