// The token endpoint of the old tenant, and the tokens that it answers with. Nothing of them counts before it is verified.
import { unverifiedClaims, verifyJwt } from '../../capabilities/signing/verify-jwt.ts';
import { scopeValues } from '../../records/clients/apis.ts';
import { ASYMMETRIC_ALGS } from '../../records/connections/openid.ts';
import { type MoveRecord, type OldApplication, oldIssuer } from '../../records/tenant/move.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isJsonObject, jsonOf } from '../../runtime/json.ts';
import { type Claims, verifyIdToken } from '../connections/oidc/id-token.ts';
import type { OpenIdProviders } from '../connections/oidc/providers.ts';
import { codeIn, type OldAddress, OldTenantFault, type SendToOldTenant } from './old-requests.ts';

export interface OldTokenDependencies {
  openId: Pick<OpenIdProviders, 'keysOf'>;
  wallClock: Clock;
}

/** How an application authenticates at the old tenant. Without a secret it is a public one there. */
export interface OldCredentials extends OldApplication {
  method: 'client_secret_post' | 'client_secret_basic' | 'none';
}

/** The most characters of a token that is read. */
const MAX_TOKEN = 32 * 1024;

/** Tokens that were not verified yet. */
export interface OldTokens {
  access_token: string;
  id_token: string | undefined;
  refresh_token: string | undefined;
  /** Undefined where the answer does not say it. */
  scopes: readonly string[] | undefined;
}

/**
 * Asks the token endpoint of the old tenant.
 * @returns undefined when it refuses what was presented (`invalid_grant`).
 * @throws OldTenantFault, OutboundError
 */
export async function requestOldTokens(
  send: SendToOldTenant,
  address: OldAddress,
  credentials: OldCredentials,
  parameters: Readonly<Record<string, string>>,
): Promise<OldTokens | undefined> {
  const { headers, fields } = authentication(credentials);
  const response = await send(address, '/oauth/token', {
    method: 'POST',
    headers: { ...headers, accept: 'application/json' },
    body: new URLSearchParams({ ...parameters, ...fields }),
  });
  const answer = jsonOf(await response.text());
  if (!isJsonObject(answer)) throw new OldTenantFault(`it answered ${response.status} without JSON`);
  if (response.status !== 200) {
    if (answer.error === 'invalid_grant') return undefined;
    throw new OldTenantFault(`it answered ${response.status}${codeIn(answer)}`);
  }
  const { access_token: accessToken, id_token: idToken, refresh_token: refreshToken, scope } = answer;
  const isToken = (one: unknown) => typeof one === 'string' && one !== '' && one.length <= MAX_TOKEN;
  const optional = (one: unknown) => one === undefined || one === null || isToken(one);
  if (!isToken(accessToken) || !optional(idToken) || !optional(refreshToken))
    throw new OldTenantFault('its token response has no access token');
  return {
    access_token: String(accessToken),
    id_token: typeof idToken === 'string' ? idToken : undefined,
    refresh_token: typeof refreshToken === 'string' ? refreshToken : undefined,
    scopes: typeof scope === 'string' ? scopeValues(scope) : undefined,
  };
}

/** Revokes a refresh token at the old tenant (RFC 7009). @throws OldTenantFault, OutboundError */
export async function revokeOldToken(
  send: SendToOldTenant,
  address: OldAddress,
  credentials: OldCredentials,
  token: string,
): Promise<void> {
  const { headers, fields } = authentication(credentials);
  const { status } = await send(address, '/oauth/revoke', {
    method: 'POST',
    headers,
    body: new URLSearchParams({ token, ...fields }),
  });
  if (status !== 200) throw new OldTenantFault(`a refresh token was not revoked there (${status})`);
}

/** Returns the credentials as the old tenant expects them (RFC 6749 §2.3.1). */
function authentication({ method, client_id, client_secret = '' }: OldCredentials): {
  headers: Record<string, string>;
  fields: Record<string, string>;
} {
  if (method === 'none') return { headers: {}, fields: { client_id } };
  if (method === 'client_secret_post') return { headers: {}, fields: { client_id, client_secret } };
  const pair = `${encodeURIComponent(client_id)}:${encodeURIComponent(client_secret)}`;
  return { headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }, fields: {} };
}

/** Finds the keys of the old tenant. */
const keysOf = ({ openId }: Pick<OldTokenDependencies, 'openId'>, { origin }: Pick<MoveRecord, 'origin'>) =>
  openId.keysOf(`${origin}/.well-known/jwks.json`);

/**
 * Verifies an ID token of the old tenant: its signature by that tenant's keys, its issuer, and that it is for an application.
 * @param expected `secret` is the key where the application has ID tokens signed with it (HS256).
 * @throws AuthError of upstreamFault
 */
export function verifyOldIdToken(
  deps: Pick<OldTokenDependencies, 'openId' | 'wallClock'>,
  move: Pick<MoveRecord, 'origin'>,
  token: string,
  expected: {
    clientId: string;
    secret?: string | undefined;
    algorithms?: readonly string[];
    /** Issuers beside that of the canonical name. */
    issuers?: readonly string[];
    nonce?: string;
    accessToken?: string;
  },
): Promise<Claims> {
  const { clientId, secret = '', algorithms = ASYMMETRIC_ALGS, issuers = [], nonce, accessToken } = expected;
  return verifyIdToken(token, {
    keys: keysOf(deps, move),
    secret,
    algorithms: secret === '' ? algorithms : ['HS256', ...algorithms],
    audiences: [clientId],
    isIssuer: (issuer) => [oldIssuer(move), ...issuers].includes(issuer),
    nonce,
    accessToken,
    now: deps.wallClock(),
  });
}

/** What an access token of the old tenant says. */
export interface OldAccess {
  userId: string;
  /** The identifiers of APIs that it is for, without that of `/userinfo`. */
  audiences: string[];
  scopes: string[];
}

/** Allowed difference between the clocks, seconds. */
const TOLERANCE = 60;

/**
 * Verifies an access token of the old tenant that was issued to an application.
 * @returns undefined for one that is no signed JWT: it is for `/userinfo` alone.
 * @throws OldTenantFault, JOSEError for one that is not valid.
 */
export async function readOldAccessToken(
  deps: OldTokenDependencies,
  move: Pick<MoveRecord, 'origin'>,
  token: string,
  clientId: string,
): Promise<OldAccess | undefined> {
  if (!isSignedJwt(token)) return undefined;
  const { payload } = await verifyJwt(token, keysOf(deps, move), {
    algorithms: ASYMMETRIC_ALGS,
    // The hosted service has two profiles of access tokens: that of RFC 9068, and one without a type.
    types: ['at+jwt', undefined],
    issuer: oldIssuer(move),
    currentDate: new Date(deps.wallClock()),
    clockTolerance: TOLERANCE,
    requiredClaims: ['sub', 'aud', 'exp'],
  });
  const { sub, aud, azp, client_id, scope } = payload;
  if ((azp ?? client_id) !== clientId)
    throw new OldTenantFault('its access token is for another application');
  const audiences = [aud ?? []].flat().filter((one) => one !== `${oldIssuer(move)}userinfo`);
  return { userId: String(sub), audiences, scopes: typeof scope === 'string' ? scopeValues(scope) : [] };
}

function isSignedJwt(token: string): boolean {
  if (token.split('.').length !== 3) return false;
  try {
    unverifiedClaims(token);
    return true;
  } catch {
    return false;
  }
}
