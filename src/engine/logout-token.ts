// Logout tokens (OpenID Connect Back-Channel Logout 1.0 §2.4).
import { importJWK, type JWK, SignJWT } from 'jose';
import type { Client } from '../records/collections.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Config } from '../tenant/config.ts';

/** Seconds; at most two minutes are advised (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const LIFETIME = 120;

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** Signs a logout token for an application. */
export type SignLogoutToken = (client: Client, session: { sid: string; userId: string }) => Promise<string>;

/** Signs as for ID tokens: with the current key, or the application's secret for HS256. */
export function logoutTokens(deps: {
  issuer: string;
  config: Config;
  clock: Clock;
  random: Random;
}): SignLogoutToken {
  const { issuer, config, clock, random } = deps;
  return async (client, { sid, userId }) => {
    const [current] = config.signingKeys();
    if (current === undefined) throw new Error('there is no signing key');
    const now = epochSeconds(clock);
    const secret = client.jwt_configuration.alg === 'HS256' ? client.client_secret : undefined;
    // Never a nonce, so that it cannot pass for an ID token (§2.4).
    const token = new SignJWT({ sid, events: { [EVENT]: {} } })
      .setIssuer(issuer)
      .setSubject(userId)
      .setAudience(client.client_id)
      .setIssuedAt(now)
      .setExpirationTime(now + LIFETIME)
      .setJti(random(16).toString('base64url'));
    return secret === undefined
      ? token
          .setProtectedHeader({ alg: 'RS256', typ: 'logout+jwt', kid: current.id })
          .sign(await importJWK(current.jwk as JWK, 'RS256'))
      : token.setProtectedHeader({ alg: 'HS256', typ: 'logout+jwt' }).sign(new TextEncoder().encode(secret));
  };
}
