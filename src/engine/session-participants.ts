// Who else must hear that a session is over: OpenID Connect applications, SAML service providers, whoever
// joins. A feature joins at the server's start and never knows the others.
import type { Logger } from 'pino';

/** A session that has ended: its record, its cookie's worth and its tokens are gone already. */
export interface EndedSession {
  /** The session id, as in the `sid` of its ID tokens: one for all parties of the session. */
  sid: string;
  /** The user's `sub`. */
  userId: string;
  /** The client_ids of the applications that took part, by OpenID Connect or SAML. */
  clientIds: readonly string[];
  reason: SessionEnd;
  /** The client_id of the SAML service provider whose LogoutRequest ended it, and which needs no word of it. */
  startedBy?: string | undefined;
}

/**
 * Why a session ended, as the hosted service's `backchannel_logout_initiators` name it. `rp-logout`: the
 * user logged out, by any of the three endpoints. `account-deactivated`: the user was blocked.
 * `session-revoked`: another user logged in at this browser, or an administrator ended it.
 */
export type SessionEnd =
  | 'rp-logout'
  | 'password-changed'
  | 'account-deactivated'
  | 'account-deleted'
  | 'session-revoked';

/** A browser that is at hand when its session ends. */
export interface LeavingBrowser {
  /** Where it goes in the end; absolute, decided and safe: never to be put together from a request. */
  returnTo: string;
}

/** One kind of party: it knows which of its own took part in a session, by the `sid`. */
export interface SessionParty {
  /** For the log. */
  name: string;
  /**
   * Tells all parties of this kind that the session is over; what takes long goes on in the background.
   * Called once a session, after it is over, in the order of joining. What it throws is logged, and stops
   * neither the logout nor the other parties.
   * @param browser there only when the user's own browser is: a party that is reached through the browser
   *   alone (SAML single logout) answers with the address that the browser is sent to first, and sees to it
   *   that it comes to `returnTo` in the end, whether or not its parties answer.
   * @returns that address, absolute, or undefined when the browser need not come by.
   */
  sessionEnded(session: EndedSession, browser?: LeavingBrowser): Promise<string | undefined>;
}

export interface SessionParticipants {
  /** Adds a kind of party, at the server's start. */
  join(party: SessionParty): void;
  /**
   * Tells all parties.
   * @returns where the browser goes now: `browser.returnTo`, or what leads there by way of the parties.
   */
  tell(session: EndedSession, browser?: LeavingBrowser): Promise<string | undefined>;
}

/** The parties of a tenant's sessions; none at first. */
export function createSessionParticipants(log: Logger): SessionParticipants {
  const parties: SessionParty[] = [];
  return {
    join: (party) => {
      parties.push(party);
    },
    tell: async (session, browser) => {
      let returnTo = browser?.returnTo;
      for (const party of parties) {
        try {
          const through = await party.sessionEnded(
            session,
            returnTo === undefined ? undefined : { returnTo },
          );
          if (browser !== undefined) returnTo = through ?? returnTo;
        } catch (error) {
          log.error({ err: error, party: party.name }, 'a party could not be told of a logout');
        }
      }
      return returnTo;
    },
  };
}
