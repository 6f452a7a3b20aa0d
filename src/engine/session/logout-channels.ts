// Tells the applications of a session that it has ended, through back channels and the single logout of other
// protocols. Each feature adds its channel at the server's start and knows no other.

import { SignJWT } from 'jose';
import type { Logger } from 'pino';
import { signJwt } from '../../capabilities/signing/jwt.ts';
import type { Signing } from '../../capabilities/signing/signing.ts';
import { idTokenAlg } from '../../records/clients/clients.ts';
import type { Client } from '../../records/collections.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Write } from '../../store/contract.ts';
import { encryptFor } from '../client/client-encryption.ts';
import type { SessionMetadata } from './session-metadata.ts';

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

// Logout tokens (OpenID Connect Back-Channel Logout 1.0 §2.4).

/** Seconds; at most two minutes are advised (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const LIFETIME = 120;

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** The session that has ended. */
interface LogoutTokenSession {
  sid: string;
  userId: string;
  /** The session's metadata, for applications that ask for it. */
  metadata?: SessionMetadata | undefined;
}

/** Signs a logout token for an application. */
export type SignLogoutToken = (client: Client, session: LogoutTokenSession) => Promise<string>;

/** Whether an application's logout tokens contain the session's metadata. */
export function includesSessionMetadata({ oidc_logout }: Client): boolean {
  return oidc_logout?.backchannel_logout_session_metadata?.include === true;
}

/**
 * Makes logout tokens. They are signed like ID tokens, with the current key of the application's algorithm or with
 * its secret for HS256, and encrypted like them (§2.4).
 */
export function logoutTokens(deps: {
  issuer: string;
  signing: Pick<Signing, 'sign' | 'current'>;
  clock: Clock;
  random: Random;
}): SignLogoutToken {
  const { issuer, signing, clock, random } = deps;
  return async (client, { sid, userId, metadata }) => {
    const now = epochSeconds(clock);
    const typ = 'logout+jwt';
    // Never a nonce, so that it cannot pass for an ID token (§2.4).
    const claims = {
      sid,
      events: { [EVENT]: {} },
      iss: issuer,
      sub: userId,
      aud: client.client_id,
      iat: now,
      exp: now + LIFETIME,
      jti: random(16).toString('base64url'),
      ...(includesSessionMetadata(client) && metadata && { session_metadata: metadata }),
    };
    const alg = idTokenAlg(client);
    if (alg !== 'HS256') {
      const jwt = await signJwt(signing, { alg, typ }, claims);
      return encryptFor(client, { jwt, issuer });
    }
    if (client.client_secret === undefined) throw new Error(`${client.client_id} has no secret for HS256`);
    const secret = new TextEncoder().encode(client.client_secret);
    const jwt = await new SignJWT(claims).setProtectedHeader({ alg, typ }).sign(secret);
    return encryptFor(client, { jwt, issuer });
  };
}
