// Access tokens of OpenID providers, renewed (OpenID Connect Core 1.0 §12).
import { decodeJwt } from 'jose';
import type { UpstreamGrant } from '../../records/identities.ts';
import type { OpenIdOptions } from '../../records/openid.ts';
import { grantOf } from '../oauth2/token.ts';
import type { UpstreamDependencies, UpstreamRefresh } from '../redirect.ts';
import { claimsOf, type OpenIdConnection } from './connection.ts';
import { exchangeRefreshToken } from './exchange.ts';
import { refused } from './id-token.ts';

/**
 * What the provider gives for a refresh token. An ID token need not come with it; one that does is judged as at a login, and
 * must be of the user whose tokens these are (§12.2).
 * @throws AuthError by `upstreamFault`.
 */
export async function renewedGrant<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  refresh: UpstreamRefresh,
): Promise<UpstreamGrant> {
  const tokens = await exchangeRefreshToken(deps, connection, refresh);
  const { id_token, access_token: accessToken } = tokens;
  if (id_token !== undefined) {
    const { iss, sub } = await claimsOf(deps, connection, id_token, { nonce: undefined, accessToken });
    const before = refresh.idToken === undefined ? undefined : decodeJwt(refresh.idToken);
    if (before?.sub !== sub || before.iss !== iss) throw refused('is of another user');
  }
  return grantOf(tokens, deps.wallClock);
}
