// Logout tokens (OpenID Connect Back-Channel Logout 1.0 §2.4).
import { SignJWT } from 'jose';
import { signJwt } from '../../capabilities/signing/jwt.ts';
import type { Signing } from '../../capabilities/signing/signing.ts';
import { idTokenAlg } from '../../records/clients.ts';
import type { Client } from '../../records/collections.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { encryptFor } from '../client/encryption.ts';
import type { SessionMetadata } from './session-metadata.ts';

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
