// What visitors who have not logged in may ask of an API, and their access tokens.
import { anonymousGrant } from '../../engine/anonymous-access.ts';
import { ANONYMOUS } from '../../engine/own-tokens.ts';
import { AuthError } from '../../http/errors.ts';
import type { ResourceServer } from '../../records/collections.ts';
import { scopeValues } from '../../records/scope.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { signJwt } from '../../signing/jwt.ts';
import type { Config } from '../../tenant/config.ts';
import type { AnonymousSession, SessionDependencies } from './session-token.ts';

/** What a token is for. */
interface Access {
  /** Undefined for a token without an API, which tells nothing but its subject. */
  api: ResourceServer | undefined;
  scope: string;
}

/**
 * What an application may have for its visitors.
 * @param audience the API's identifier.
 * @param asked scopes; all that are granted where there is none.
 * @throws AuthError 400 `invalid_target` for an API that does not take visitors, or not of this application;
 *   `invalid_scope` for scopes that are not granted.
 */
export async function accessOf(
  config: Config,
  clientId: string,
  audience: string | undefined,
  asked: string | undefined,
): Promise<Access> {
  const api = audience === undefined ? undefined : await config.resourceServer(audience);
  const granted = audience === undefined ? [] : await grantedScopes(config, clientId, api);
  const wanted = scopeValues(asked);
  const refused = wanted.filter((scope) => !granted.includes(scope));
  if (refused.length > 0)
    throw new AuthError(
      400,
      'invalid_scope',
      `Scopes are not granted to anonymous users: ${refused.join(' ')}`,
    );
  return { api, scope: (wanted.length > 0 ? [...new Set(wanted)] : granted).join(' ') };
}

/** The scopes of the client grant, as far as the API still has them. */
async function grantedScopes(
  config: Config,
  clientId: string,
  api: ResourceServer | undefined,
): Promise<string[]> {
  const grant = api && (await anonymousGrant(config, await config.client(clientId), api));
  if (api === undefined || grant === undefined)
    // One answer, whether there is such an API or not.
    throw new AuthError(400, 'invalid_target', 'The API takes no anonymous users of this client.');
  const all = api.scopes.map(({ value }) => value);
  return grant.allow_all_scopes === true ? all : all.filter((scope) => grant.scope.includes(scope));
}

/** Seconds of a token that is for no API. */
const FOR_NOTHING = 3600;

/**
 * Makes an access token. It cannot be called back: it is as short as the API has its tokens in a browser, and ends with the
 * session.
 * @returns it, and its seconds.
 */
export async function accessToken(
  { issuer, random, signing, wallClock }: SessionDependencies,
  clientId: string,
  { subject, expiresAt }: AnonymousSession,
  { api, scope }: Access,
): Promise<{ token: string; seconds: number }> {
  const now = epochSeconds(wallClock);
  const lifetime = api === undefined ? FOR_NOTHING : Math.min(api.token_lifetime, api.token_lifetime_for_web);
  const seconds = Math.max(1, Math.min(lifetime, expiresAt - now));
  const alg = api?.signing_alg ?? 'RS256';
  // The tenant file guarantees it; a store edited by hand must fail instead of signing with another key.
  if (alg === 'HS256') throw new Error(`the API ${api?.identifier} has HS256, and takes anonymous users`);
  const rfc9068 = api?.token_dialect.startsWith('rfc9068') === true;
  const claims = {
    iss: issuer,
    sub: subject,
    aud: api?.identifier ?? `${issuer}anonymous`,
    iat: now,
    exp: now + seconds,
    ...(rfc9068 ? { client_id: clientId, jti: random(16).toString('base64url') } : { azp: clientId }),
    ...(scope !== '' && { scope }),
    gty: ANONYMOUS,
    ...(api?.token_dialect.endsWith('_authz') === true && {
      permissions: scopeValues(scope),
    }),
  };
  // Always typed `at+jwt` (RFC 9068 §2.1), whatever the API's token dialect, so that nobody takes it for an ID
  // token.
  return { token: await signJwt(signing, { alg, typ: 'at+jwt' }, claims), seconds };
}
