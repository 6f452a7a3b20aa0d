// Access tokens of OpenID providers, renewed (OpenID Connect Core 1.0 §12).
import { decodeJwt } from 'jose';
import type { UpstreamGrant } from '../../records/identities.ts';
import type { OpenIdOptions } from '../../records/openid.ts';
import { grantOf } from '../oauth2/token.ts';
import type { UpstreamDependencies, UpstreamRefresh } from '../redirect.ts';
import type { Tokens } from './client.ts';
import { claimsOf, type OpenIdConnection } from './connection.ts';
import { exchangeRefreshToken, withProofKey } from './exchange.ts';
import { refused } from './id-token.ts';

/**
 * What the provider gives for a refresh token. An ID token need not come with it; one that does is judged as at a login, and
 * must be of the user whose tokens these are (§12.2).
 * @throws AuthError by `upstreamFault`.
 */
export async function renewedGrant<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  opened: OpenIdConnection<Options>,
  refresh: UpstreamRefresh,
): Promise<UpstreamGrant> {
  const connection = await withProofKey(opened);
  const tokens = await exchangeRefreshToken(deps, connection, refresh);
  const { id_token, access_token: accessToken } = tokens;
  if (id_token !== undefined) {
    const { iss, sub } = await claimsOf(deps, connection, id_token, { nonce: undefined, accessToken });
    const before = refresh.idToken === undefined ? undefined : decodeJwt(refresh.idToken);
    if (before?.sub !== sub || before.iss !== iss) throw refused('is of another user');
  }
  return openIdGrant(tokens, connection, deps);
}

/** What is kept of an answer: no access token that is bound to a key, which is kept nowhere. */
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
