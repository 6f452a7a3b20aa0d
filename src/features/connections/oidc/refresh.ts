// Renews access tokens of OpenID providers (OpenID Connect Core 1.0 §12).

import { unverifiedClaims } from '../../../capabilities/signing/verify-jwt.ts';
import type { UpstreamGrant } from '../../../records/identities.ts';
import type { OpenIdOptions } from '../../../records/openid.ts';
import { grantOf } from '../oauth2/token.ts';
import type { UpstreamDependencies, UpstreamRefresh } from '../redirect.ts';
import type { Tokens } from './client.ts';
import { claimsOf, type OpenIdConnection } from './connection.ts';
import { exchangeRefreshToken, withProofKey } from './exchange.ts';
import { idTokenFault } from './id-token.ts';

/**
 * Exchanges a refresh token. The response need not have an ID token; one that it has is verified as at a login, and must be of
 * the same user as the one before (§12.2).
 * @throws AuthError by `upstreamFault`.
 */
export async function refreshGrant<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  configured: OpenIdConnection<Options>,
  refresh: UpstreamRefresh,
): Promise<UpstreamGrant> {
  const connection = await withProofKey(configured);
  const tokens = await exchangeRefreshToken(deps, connection, refresh);
  const { id_token, access_token: accessToken } = tokens;
  if (id_token !== undefined) {
    const { iss, sub } = await claimsOf(deps, connection, id_token, { nonce: undefined, accessToken });
    const previous = refresh.idToken === undefined ? undefined : unverifiedClaims(refresh.idToken);
    if (previous?.sub !== sub || previous.iss !== iss) throw idTokenFault('is of another user');
  }
  return openIdGrant(tokens, connection, deps);
}

/**
 * Returns the part of a token response that is stored. A DPoP-bound access token is left out: its key is not stored, so it
 * could not be used.
 */
export function openIdGrant(
  tokens: Tokens,
  { boundTo }: Pick<OpenIdConnection<OpenIdOptions>, 'boundTo'>,
  { wallClock }: Pick<UpstreamDependencies, 'wallClock'>,
): UpstreamGrant {
  const grant = grantOf(tokens, wallClock);
  if (boundTo === undefined) return grant;
  const { access_token: _bound, expires_at: _ends, ...others } = grant;
  return others;
}
