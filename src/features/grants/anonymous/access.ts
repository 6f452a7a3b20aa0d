// Access tokens of anonymous sessions, and which API and scopes they may be for.

import { signJwt } from '../../../capabilities/signing/jwt.ts';
import { anonymousGrant } from '../../../engine/anonymous-access.ts';
import { ANONYMOUS } from '../../../engine/own-tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import type { ResourceServer } from '../../../records/collections.ts';
import { scopeValues } from '../../../records/scope.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import type { Config } from '../../../tenant/config.ts';
import type { AnonymousSession, SessionDependencies } from './session-token.ts';

/** The API and scope of a token. */
interface Access {
  /** Undefined for a token without an API, which contains nothing but its subject. */
  api: ResourceServer | undefined;
  scope: string;
}

/**
 * Returns the API and scope of a request.
 * @param audience the API's identifier.
 * @param requestedScope the requested scopes; without any, all that are granted.
 * @throws AuthError 400 `invalid_target` for an API that does not accept anonymous sessions of this application;
 *   `invalid_scope` for scopes that are not granted.
 */
export async function accessOf(
  config: Config,
  clientId: string,
  audience: string | undefined,
  requestedScope: string | undefined,
): Promise<Access> {
  const api = audience === undefined ? undefined : await config.resourceServer(audience);
  const granted = audience === undefined ? [] : await grantedScopes(config, clientId, api);
  const requestedScopes = scopeValues(requestedScope);
  const refused = requestedScopes.filter((scope) => !granted.includes(scope));
  if (refused.length > 0)
    throw new AuthError(
      400,
      'invalid_scope',
      `Scopes are not granted to anonymous users: ${refused.join(' ')}`,
    );
  return { api, scope: (requestedScopes.length > 0 ? [...new Set(requestedScopes)] : granted).join(' ') };
}

/** Returns the scopes of the client grant, as far as the API still has them. */
async function grantedScopes(
  config: Config,
  clientId: string,
  api: ResourceServer | undefined,
): Promise<string[]> {
  const grant = api && (await anonymousGrant(config, await config.client(clientId), api));
  if (api === undefined || grant === undefined)
    // The same answer, whether the API exists or not.
    throw new AuthError(400, 'invalid_target', 'The API takes no anonymous users of this client.');
  const all = api.scopes.map(({ value }) => value);
  return grant.allow_all_scopes === true ? all : all.filter((scope) => grant.scope.includes(scope));
}

/** Lifetime of a token that is for no API, seconds. */
const NO_API_SECONDS = 3600;

/**
 * Makes an access token. It cannot be revoked, so it has the API's shorter lifetime for browsers, and ends with the
 * session.
 * @returns the token, and its lifetime in seconds.
 */
export async function accessToken(
  { issuer, random, signing, wallClock }: SessionDependencies,
  clientId: string,
  { subject, expiresAt }: AnonymousSession,
  { api, scope }: Access,
): Promise<{ token: string; seconds: number }> {
  const now = epochSeconds(wallClock);
  const lifetime =
    api === undefined ? NO_API_SECONDS : Math.min(api.token_lifetime, api.token_lifetime_for_web);
  const seconds = Math.max(1, Math.min(lifetime, expiresAt - now));
  const alg = api?.signing_alg ?? 'RS256';
  // The tenant file is checked for it; with a store that was edited by hand this fails instead of signing with
  // another key.
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
  // Always `at+jwt` (RFC 9068 §2.1), whatever the API's token dialect, so that nobody takes it for an ID token.
  return { token: await signJwt(signing, { alg, typ: 'at+jwt' }, claims), seconds };
}
