// The common implementation of all OpenID Connect strategies.

import { unverifiedClaims } from '../../../capabilities/signing/verify-jwt.ts';
import { STRATEGIES } from '../../../records/connections/connections.ts';
import type { UpstreamGrant } from '../../../records/connections/identities.ts';
import { type OpenIdOptions, STANDARD_PROFILE } from '../../../records/connections/openid.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import { grantOf } from '../oauth2/oauth2-strategy.ts';
import {
  type RedirectStrategy,
  refuseProviderError,
  type UpstreamDependencies,
  type UpstreamIdentity,
  type UpstreamRefresh,
  type UpstreamResponse,
  upstreamFault,
  withQuery,
} from '../redirect.ts';
import { authorizationUrl, sendsNonce } from './authorization.ts';
import type { Tokens } from './client.ts';
import { claimsOf, endpointOf, endSessionOf, type OpenIdConnection, openConnection } from './connection.ts';
import { exchangeCode, exchangeRefreshToken, userInfoOf, withProofKey } from './exchange.ts';
import { idTokenFault } from './id-token.ts';
import type { Preset, ProviderResponse } from './preset.ts';

export function openIdStrategy<Options extends OpenIdOptions>(preset: Preset<Options>): RedirectStrategy {
  const { name, label, isSocial, idsWithin } = preset;
  return {
    name,
    ...(label !== undefined && { label }),
    page: 'redirect',
    amr: [],
    record: STRATEGIES[name],
    isSocial,
    idsWithin,
    redirect: async (deps, request) => ({
      url: authorizationUrl(await openConnection(deps, preset, request.connection), request),
    }),
    identify: async (deps, response) => {
      const connection = await openConnection(deps, preset, response.connection);
      checkIssuer(connection, response.parameters);
      refuseProviderError(response.parameters);
      if (connection.preset.responseMode === 'form_post' && !response.isPosted)
        throw upstreamFault(
          'invalid_request',
          'The identity provider did not post its answer, as it was asked to.',
        );
      return connection.isFrontChannel
        ? fromFrontChannel(deps, connection, response)
        : fromBackChannel(deps, connection, response);
    },
    logout: async (deps, { connection: record, grant, callback, state }) => {
      const endSession = await endSessionOf(deps, preset, record);
      if (endSession === undefined) return undefined;
      return withQuery(endSession.address, {
        ...(endSession.clientId !== undefined && { client_id: endSession.clientId }),
        ...(grant.id_token !== undefined && { id_token_hint: grant.id_token }),
        post_logout_redirect_uri: callback,
        state,
      });
    },
    check: async (deps, connection) => {
      const { metadata, isFrontChannel } = await openConnection(deps, preset, connection);
      endpointOf(metadata, 'authorization_endpoint');
      if (!isFrontChannel) endpointOf(metadata, 'token_endpoint');
    },
    refresh: async (deps, refresh) =>
      refreshGrant(deps, await openConnection(deps, preset, refresh.connection), refresh),
  };
}

/**
 * Rejects a response of another provider (mix-up attack, RFC 9207 §2.4). The parameter `iss` is required if the metadata
 * announces it, except in a response with an ID token: its own `iss` is verified, and providers leave the parameter out (§4).
 * @throws AuthError by `upstreamFault`
 */
function checkIssuer<Options extends OpenIdOptions>(
  { metadata, isFrontChannel }: OpenIdConnection<Options>,
  { iss }: UpstreamResponse['parameters'],
): void {
  const isRequired = !isFrontChannel && metadata.authorization_response_iss_parameter_supported === true;
  const isMissing = iss === undefined && isRequired;
  if (isMissing || (iss !== undefined && iss !== metadata.issuer)) {
    throw upstreamFault('access_denied', 'The answer is of another identity provider.');
  }
}

/** Returns the identity of an ID token that the browser posted (OAuth 2.0 Form Post Response Mode). */
async function fromFrontChannel<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  { nonce, parameters }: UpstreamResponse,
): Promise<UpstreamIdentity> {
  const { id_token = '' } = parameters;
  if (id_token === '') throw upstreamFault('invalid_request', 'The identity provider sent no ID token.');
  const claims = await claimsOf(deps, connection, id_token, { nonce });
  return { ...identityOf(deps, connection, { claims, userInfo: {}, parameters }), grant: { id_token } };
}

async function fromBackChannel<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  configured: OpenIdConnection<Options>,
  response: UpstreamResponse,
): Promise<UpstreamIdentity> {
  const { parameters } = response;
  const { code = '' } = parameters;
  if (code === '')
    throw upstreamFault('invalid_request', 'The identity provider sent no authorization code.');
  const connection = await withProofKey(configured);
  const tokens = await exchangeCode(deps, connection, response, code);
  const nonce = sendsNonce(connection) ? response.nonce : undefined;
  return identityOfTokens(deps, connection, tokens, { nonce, parameters });
}

/**
 * Returns the identity of a token response: the claims of its ID token and of the userinfo endpoint.
 * @param nonce undefined if the request had none.
 * @throws AuthError by `upstreamFault`
 */
async function identityOfTokens<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  tokens: Awaited<ReturnType<typeof exchangeCode>>,
  { nonce, parameters }: { nonce: string | undefined } & Pick<ProviderResponse, 'parameters'>,
): Promise<UpstreamIdentity> {
  const { id_token, access_token } = tokens;
  if (id_token === undefined) {
    throw upstreamFault('invalid_request', "The identity provider's token endpoint gave no ID token.");
  }
  const claims = await claimsOf(deps, connection, id_token, { nonce, accessToken: access_token });
  const userInfo = await userInfoOf(deps, connection, access_token, claims.sub);
  const further = await connection.preset.further?.(deps, connection, access_token);
  const identity = identityOf(deps, connection, { claims, userInfo, parameters });
  return {
    ...identity,
    profile: { ...identity.profile, ...further },
    grant: openIdGrant(tokens, connection, deps),
  };
}

/** Returns the identity that a provider's claims describe. @throws AuthError by `upstreamFault` if they name no user. */
export function identityOf<Options extends OpenIdOptions>(
  deps: Pick<UpstreamDependencies, 'wallClock'>,
  { preset, options }: OpenIdConnection<Options>,
  response: ProviderResponse,
): UpstreamIdentity {
  const profile = profileOf(options, response);
  const { auth_time: authenticatedAt } = response.claims;
  const sessionEndsAt = sessionEndOf(deps, options, response.claims);
  return {
    ...(sessionEndsAt !== undefined && { sessionEndsAt }),
    ...(typeof authenticatedAt === 'number' && { authenticatedAt }),
    id: preset.idOf?.(response.claims, options) ?? response.claims.sub,
    ...(preset.stableOf && { stable: preset.stableOf(response.claims, options) }),
    profile: preset.profile?.(profile, response, options) ?? profile,
  };
}

// docs/understand/decisions/sessions-logout.md#a-providers-limit-on-a-session-applies-to-the-session-only
/**
 * Returns when the session at the provider ends, epoch seconds, if the connection uses the claim `session_expiry`. Only a login
 * is checked by it: access tokens are renewed after the session has ended, too.
 * @throws AuthError by `upstreamFault` for a session that has ended, and for a value that is not a time, which would not limit
 *   the session here.
 */
function sessionEndOf(
  { wallClock }: Pick<UpstreamDependencies, 'wallClock'>,
  { id_token_session_expiry_supported: isSupported }: OpenIdOptions,
  { session_expiry: expiry }: ProviderResponse['claims'],
): number | undefined {
  if (isSupported !== true || expiry === undefined) return undefined;
  if (typeof expiry !== 'number' || expiry <= 0 || !Number.isSafeInteger(Math.floor(expiry)))
    throw idTokenFault('has a session_expiry that is no time');
  if (expiry <= epochSeconds(wallClock)) throw idTokenFault('is of a session that is over');
  return Math.floor(expiry);
}

// Renews access tokens of OpenID providers (OpenID Connect Core 1.0 §12).

/**
 * Exchanges a refresh token. The response need not have an ID token; one that it has is verified as at a login, and must be of
 * the same user as the one before (§12.2).
 * @throws AuthError by `upstreamFault`.
 */
async function refreshGrant<Options extends OpenIdOptions>(
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
function openIdGrant(
  tokens: Tokens,
  { boundTo }: Pick<OpenIdConnection<OpenIdOptions>, 'boundTo'>,
  { wallClock }: Pick<UpstreamDependencies, 'wallClock'>,
): UpstreamGrant {
  const grant = grantOf(tokens, wallClock);
  if (boundTo === undefined) return grant;
  const { access_token: _bound, expires_at: _ends, ...others } = grant;
  return others;
}

// Builds the user's profile from the claims of a provider: all of them, or those that the connection maps (`attribute_map`).

/** Claims that describe the token, and not the user. */
const PROTOCOL = new Set([
  ...['iss', 'sub', 'aud', 'azp', 'exp', 'iat', 'nbf', 'jti', 'nonce', 'sid', 'auth_time', 'acr', 'amr'],
  ...['at_hash', 'c_hash', 's_hash', 'nonce_supported', 'typ', 'ver', 'aio', 'rh', 'uti', '_claim_names'],
  '_claim_sources',
]);

/** A placeholder in a value of the map. */
const PLACEHOLDER = /\$\{([^{}]+)\}/g;

/** Returns the profile that a connection's `attribute_map` makes of a provider's claims. */
function profileOf(
  { attribute_map: map }: OpenIdOptions,
  response: ProviderResponse,
): Record<string, unknown> {
  if (map.mapping_mode === 'use_map') return mapClaims(map.attributes, response);
  // The ID token is signed, so its claims take precedence.
  const all = { ...response.userInfo, ...response.claims };
  const isBasic = map.mapping_mode === 'basic_profile';
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => (isBasic ? STANDARD_PROFILE.has(name) : !PROTOCOL.has(name))),
  );
}

function mapClaims(
  attributes: Readonly<Record<string, unknown>>,
  response: ProviderResponse,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => {
      const found = typeof value === 'string' ? fillTemplate(value, response) : value;
      return found === undefined || found === null ? [] : [[name, found]];
    }),
  );
}

/**
 * Replaces the placeholders of a value. A value that consists of one placeholder becomes the claim with its own type; within
 * a text, claims are inserted as texts.
 */
function fillTemplate(template: string, response: ProviderResponse): unknown {
  const [[placeholder, claim = ''] = []] = template.matchAll(PLACEHOLDER);
  if (placeholder === template && isClaim(claim)) return claimAt(response, claim);
  return template.replaceAll(PLACEHOLDER, (all, name: string) => {
    if (!isClaim(name)) return all;
    const found = claimAt(response, name);
    return typeof found === 'string' || typeof found === 'number' ? String(found) : '';
  });
}

const [FROM_TOKEN, FROM_USERINFO] = ['context.tokenset.', 'context.userinfo.'];

const isClaim = (text: string): boolean =>
  [FROM_TOKEN, FROM_USERINFO].some((source) => text.startsWith(source) && text.length > source.length);

/** @param claim the content of a placeholder. */
function claimAt({ claims, userInfo }: ProviderResponse, claim: string): unknown {
  const isOfToken = claim.startsWith(FROM_TOKEN);
  const source: Readonly<Record<string, unknown>> = isOfToken ? claims : userInfo;
  const name = claim.slice((isOfToken ? FROM_TOKEN : FROM_USERINFO).length);
  // Namespaced claims have URLs as their names, with dots in them.
  if (Object.hasOwn(source, name)) return source[name];
  let found: unknown = source;
  for (const member of name.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found;
}
