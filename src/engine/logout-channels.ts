// How the participants of a session hear that it has ended: back channels and other protocols' single logout.
// Each feature adds its channel at the server's start and knows no other.
import type { Logger } from 'pino';
import type { Write } from '../store/contract.ts';

/** A session that has ended; its record and its tokens are gone already. */
export interface EndedSession {
  /** The session id, as in the `sid` of its ID tokens: one for all participants. */
  sid: string;
  /** The user's `sub`. */
  userId: string;
  /** The client_ids of the applications that took part, by whatever protocol. */
  clientIds: readonly string[];
  reason: SessionEnd;
  /** The client_id of the application whose own request ended it; it is not told. */
  startedBy?: string | undefined;
}

/**
 * Why a session ended, as the hosted service's `backchannel_logout_initiators` name it. `rp-logout`: the
 * user logged out, by any of the three endpoints. `idp-logout`: the identity provider did. `account-deactivated`: the user was blocked.
 * `session-revoked`: another user logged in at this browser, or an administrator ended it.
 */
export type SessionEnd =
  | 'rp-logout'
  | 'idp-logout'
  | 'password-changed'
  | 'account-deactivated'
  | 'account-deleted'
  | 'session-revoked';

/** The user's browser, when it is there as its session ends. */
export interface LogoutBrowser {
  /** Where it goes in the end: absolute and already checked, never put together from a request. */
  returnTo: string;
}

/** What is written in the commit that ends a session, and what is done after it. */
interface Announcement {
  writes: readonly Write[];
  begin(): void;
}

/** One protocol that participants are told by. */
export interface LogoutChannel {
  /** For the log. */
  name: string;
  /**
   * Asked before a session is ended, by a channel that needs no browser: what is written with the end cannot be lost.
   * What it throws is logged, and stops nothing.
   */
  announce?(session: EndedSession): Promise<Announcement>;
  /**
   * Tells the participants of an ended session; slow work goes on in the background. Called once a session, in the
   * order of the list. What it throws is logged and stops neither the logout nor the other channels.
   * @param browser given only when the user's own browser is there. A channel through the browser (single
   *   logout) returns the address to send it to first, and brings it to `returnTo` whether or not participants answer.
   * @returns that address, absolute; undefined when the channel does not need the browser.
   */
  sessionEnded?(session: EndedSession, browser?: LogoutBrowser): Promise<string | undefined>;
}

/** The channels of a tenant. */
export interface LogoutChannels {
  /** What is to be written as a session ends; `begin` is for who has written it. */
  announce(session: EndedSession): Promise<Announcement>;
  /**
   * Tells all participants.
   * @returns where the browser goes now: `browser.returnTo`, or an address that leads there through the participants.
   */
  tell(session: EndedSession, browser?: LogoutBrowser): Promise<string | undefined>;
}

/** A tenant's channels, in the order in which they are told. */
export function createLogoutChannels(channels: readonly LogoutChannel[], log: Logger): LogoutChannels {
  return {
    announce: async (session) => {
      const announced: Announcement[] = [];
      for (const { name, announce } of channels) {
        try {
          if (announce !== undefined) announced.push(await announce(session));
        } catch (error) {
          log.error({ err: error, channel: name }, 'the participants could not be told of a logout');
        }
      }
      return {
        writes: announced.flatMap(({ writes }) => writes),
        begin: () => {
          for (const one of announced) one.begin();
        },
      };
    },
    tell: async (session, browser) => {
      let returnTo = browser?.returnTo;
      for (const channel of channels) {
        try {
          const through = await channel.sessionEnded?.(
            session,
            returnTo === undefined ? undefined : { returnTo },
          );
          if (browser !== undefined) returnTo = through ?? returnTo;
        } catch (error) {
          log.error({ err: error, channel: channel.name }, 'the participants could not be told of a logout');
        }
      }
      return returnTo;
    },
  };
}
